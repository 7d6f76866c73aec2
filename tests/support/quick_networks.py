"""Networks that train in a moment."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from galaxy_al.models.networks.training import RECIPES, Trainer

QUICK = {
    "linear": RECIPES["linear"],
    "mlp": replace(RECIPES["mlp"], epochs=2),
    "resnet18": replace(RECIPES["resnet18"], epochs=2, rate=1e-4),
}
torch.set_num_threads(1)  # two test processes with two threads each would wait for one another
every_network = pytest.mark.parametrize("network", sorted(QUICK))


def items_for(network, size=40, seed=0):
    rng = np.random.default_rng(seed)
    if network == "resnet18":
        return rng.integers(0, 256, size=(size, 32, 32, 3), dtype=np.uint8)
    return rng.normal(size=(size, 5)).astype(np.float32)


def some_labels(n_classes=3, n=24, seed=0):
    return dict(enumerate(np.random.default_rng(seed).integers(0, n_classes, n).tolist()))


def trained(network, items, labels, n_classes=3, **kwargs):
    trainer = Trainer(network, n_classes=n_classes, recipe=QUICK[network], **kwargs)
    return trainer.fit(items, labels)
