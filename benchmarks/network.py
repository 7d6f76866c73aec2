"""How fast the paper's network is trained and scores images, beside the plain way.

Run:  OMP_NUM_THREADS=1 .venv/bin/python benchmarks/network.py      (about a minute)

ResNet-18 at 32 x 32, batches of 100, one thread, as the runs of a suite have it. The plain way is
what `Trainer` did at first: all weights, weight decay in the loss, torch's default Adam, single
precision. Ratios are of the least times of several runs taken in turn.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import torch
from torch.nn import functional

from galaxy_al.models.networks.devices import has_fast_bfloat16
from galaxy_al.models.networks.network import scaled_images
from galaxy_al.models.networks.resnet import ResNet18
from galaxy_al.models.networks.training import RECIPES, Trainer

N_TRAINED, N_SCORED, STEPS = 100, 2048, 6
WAYS = ("float32", "bfloat16")  # the targets are for the faster one, which is "fastest"


def plain_training(images, targets):
    network = ResNet18(2).to(memory_format=torch.channels_last).train()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = functional.cross_entropy(network(images), targets)
        norms = [torch.linalg.vector_norm(parameter) for parameter in network.parameters()]
        loss = loss + 5e-5 / 2 * torch.stack(norms).square().sum()
        loss.backward()
        optimizer.step()


@torch.inference_mode()
def plain_scoring(network, images):
    for block in torch.from_numpy(images).split(256):
        torch.softmax(network(scaled_images(block)), dim=1)


def least(works, repeat=5):
    seconds = {name: [] for name in works}
    for _ in range(repeat):
        for name, work in works.items():
            begin = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - begin)
    return {name: min(times) for name, times in seconds.items()}


def main():
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, size=(N_SCORED, 32, 32, 3), dtype=np.uint8)
    labels = {index: index % 2 for index in range(N_TRAINED)}
    ready = scaled_images(torch.from_numpy(images[:N_TRAINED]))
    targets = torch.arange(N_TRAINED) % 2
    recipe = replace(RECIPES["resnet18"], epochs=STEPS)
    trainers = {way: Trainer("resnet18", n_classes=2, recipe=recipe, precision=way) for way in WAYS}
    training = {"plain": lambda: plain_training(ready, targets)}
    training |= {way: (lambda way=way: trainers[way].fit(images, labels)) for way in WAYS}
    fastest = WAYS[has_fast_bfloat16(torch.device("cpu"))]
    models = {way: trainers[way].fit(images, labels) for way in WAYS}
    scoring = {"plain": lambda: plain_scoring(models["float32"].network.eval(), images)}
    scoring |= {way: (lambda way=way: models[way].proba(images)) for way in WAYS}
    print("| work | way | images per second | x plain | target | |\n|---|---|---:|---:|---|---|")
    for work, ways, count, wanted in (
        ("training", training, STEPS * N_TRAINED, 1.5),
        ("scoring", scoring, N_SCORED, 2.0),
    ):
        found = least(ways)
        for way, seconds in found.items():
            ratio = found["plain"] / seconds
            is_judged = way == fastest
            verdict = "" if not is_judged else "met" if ratio >= wanted else "**missed**"
            target = f"at least {wanted}" if is_judged else ""
            cells = (work, way, f"{count / seconds:,.0f}", f"{ratio:.2f}", target, verdict)
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
