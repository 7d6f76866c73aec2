"""The run of README, docs/index.md and docs/labelling.md: their numbers and their screenshots.

Run:  .venv/bin/python benchmarks/labelling.py docs/pictures      (ten minutes; needs Chromium)

The first example of docs/index.md writes the images: scikit-learn's handwritten digits, threes and
eights made rare. A browser presses the right keys, and waits while the model is trained, as every
annotator who takes two seconds per answer does. Nothing else is simulated: the project is made by
`galaxy-al init`, and the server is the real one. Prints what the pages say about the run.
"""

from __future__ import annotations

import csv
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from playwright.sync_api import expect, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from galaxy_al.client import Client
from galaxy_al.labelling.project import open_project
from galaxy_al.labelling.service import Service
from support.crashing import free_port, start

ROOT = Path(__file__).parents[1]
N_LABELS, N_DRAWS, N_SEEDS, N_WRONG = 240, 150, 5, 3
RARE = {3: "three", 8: "eight"}
KEYS = {"three": "1", "eight": "2", "other": "3"}


def make_images():
    """Run the first example of docs/index.md; returns the digit of each file."""
    page = (ROOT / "docs" / "index.md").read_text()
    made = {}
    exec(re.search(r"^```python\n(.*?)^```", page, flags=re.M | re.S)[1], made)
    return {
        f"digit-{number:04}.png": int(made["digits"].target[i])
        for number, i in enumerate(made["order"])
    }


def run(command):
    """Run a command as the pages show it; what it prints is printed below it."""
    print(f"$ galaxy-al {command}", flush=True)
    subprocess.run([sys.executable, "-m", "galaxy_al", *shlex.split(command)], check=True)


def label_by_keys(page, client, truth):
    """Press the right key again and again; returns whether each example was rare."""
    caption, is_rare = page.locator("#caption"), []
    for n in range(1, N_LABELS + 1):
        example = caption.inner_text()
        page.keyboard.press(KEYS[truth[example]])
        expect(caption).not_to_have_text(example, timeout=30_000)
        is_rare.append(truth[example] != "other")
        while (status := client.status())["n_labels"] < n or status["training"]["is_running"]:
            time.sleep(0.1)
    return np.array(is_rare)


def take_pictures(page, digit, folder):
    caption = page.locator("#caption")
    while digit[example := caption.inner_text()] != 2:  # as like a three as any, but easy to read
        page.keyboard.press("s")
        expect(caption).not_to_have_text(example, timeout=30_000)
        page.wait_for_timeout(1000)
    page.wait_for_timeout(1000)
    page.screenshot(path=folder / "label.png")
    page.keyboard.press("g")
    expect(page.locator("#grid .tile").first).to_be_visible()
    for at in (0, 2, 3):
        page.locator("#grid .tile").nth(at).click()
    page.wait_for_timeout(2000)
    page.screenshot(path=folder / "grid.png")
    page.emulate_media(color_scheme="dark")
    page.keyboard.press("f")
    expect(page.locator("#grid img").first).to_be_visible(timeout=60_000)
    page.wait_for_timeout(3000)
    page.screenshot(path=folder / "find.png")


@contextmanager
def browsing(project):
    """A page of the project on which Ann has signed in."""
    port = free_port()
    server = start(project, port)
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(f"http://localhost:{port}")
        page.get_by_label("Name").fill("Ann")
        page.get_by_role("button", name="Start labelling").click()
        expect(page.locator("#caption")).not_to_be_empty()
        yield page
        browser.close()
    server.send_signal(signal.SIGINT)
    server.wait()
    server.stdout.close()


def label(project, digit, truth, pictures):
    with browsing(project) as page:
        address = page.evaluate("location.origin")
        is_rare = label_by_keys(page, Client(address, "Ann"), truth)
        take_pictures(page, digit, pictures)
    return is_rare


def label_with_seed(seed, truth):
    """The same run without a browser, with other random choices; returns the rare found."""
    folder = Path(f"seed-{seed}")
    shutil.copytree("rare-digits", folder, ignore=shutil.ignore_patterns("labels.sqlite*", "model"))
    settings = folder / "project.toml"
    settings.write_text(settings.read_text().replace("seed = 0", f"seed = {seed}"))
    service = Service(open_project(folder))
    for _ in range(N_LABELS):
        example = service.next("Ann").id
        service.label("Ann", {example: truth[example]})
        service.wait()
    found = Counter(service.view().labels.values())
    service.close()
    return tuple(found[name] for name in RARE.values())


def take_review_picture(folder):
    """Of a copy of the project in which three rare examples got the wrong label."""
    shutil.copytree("rare-digits", "reviewed")
    service = Service(open_project(Path("reviewed")))
    labels = service.view().labels
    rare = [id for id in sorted(labels) if labels[id] == "three"][:N_WRONG]
    service.label("Ann", dict.fromkeys(rare, "eight"), "found")
    service.train()
    service.close()
    with browsing("reviewed") as page:
        page.keyboard.press("r")
        expect(page.locator("#review-stage img")).to_be_visible(timeout=60_000)
        page.wait_for_timeout(2000)
        page.screenshot(path=folder / "review.png")


def audit(truth, folder):
    """An audit of a copy of the project, answered without a browser; and the picture of it."""
    shutil.copytree("rare-digits", "audited")
    run(f"audit audited --labels {N_DRAWS}")
    service = Service(open_project(Path("audited")))
    while service.audit().n_answered < N_DRAWS:
        example = service.next("Ann").id
        service.label("Ann", {example: truth[example]})
        service.wait()
    labels = service.view().labels
    service.close()
    run("audit audited")
    run("status audited")
    left = Counter(truth[id] for id in truth if id not in labels)
    print("Left in truth:", {name: left[name] for name in RARE.values()}, flush=True)
    with browsing("audited") as page:
        page.locator("#audit-classes").scroll_into_view_if_needed()
        page.wait_for_timeout(2000)
        page.screenshot(path=folder / "audit.png")


def report_labels(is_rare, truth):
    n_rare = sum(name != "other" for name in truth.values())
    print(f"\n{len(truth):,} images, {n_rare} of them rare.")
    print(f"The first rare example is answer {np.flatnonzero(is_rare)[0] + 1}.")
    print("| labels | rare found | at random |\n|---|---|---|")
    for n in range(40, N_LABELS + 1, 40):
        print(f"| {n} | {is_rare[:n].sum()} | {n * n_rare / len(truth):.1f} |")


def report_predictions(path, truth):
    """How good the decisions are, and those of other thresholds."""
    lines = path.read_text().splitlines()
    print("\n".join(lines[:3]))
    rows = list(csv.DictReader(lines))
    for name in RARE.values():
        decided = [truth[row["id"]] for row in rows if row["decision"] == name]
        n_class = sum(other == name for other in truth.values())
        print(f"{name}: {len(decided)} decided, {decided.count(name)} right, of {n_class}")
    for threshold in (0.1, 0.3, 0.5, 0.8):
        above = [
            (row["id"], name)
            for row in rows
            for name in RARE.values()
            if float(row[f"p_{name}"]) >= threshold
        ]
        right = sum(truth[id] == name for id, name in above)
        print(f"A rare class >= {threshold}: {len(above)} images, {right} of them right")


def main():
    pictures = Path(sys.argv[1]).resolve()
    pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        digit = make_images()
        truth = {name: RARE.get(number, "other") for name, number in digit.items()}
        run("init rare-digits --images digits/ --classes three,eight --other other")
        is_rare = label("rare-digits", digit, truth, pictures)
        run("status rare-digits")
        run("export rare-digits --output labels.csv")
        print("".join(Path("labels.csv").read_text().splitlines(keepends=True)[:3]))
        run("train rare-digits")
        run("predict rare-digits/model digits/ --output predictions.csv")
        report_labels(is_rare, truth)
        report_predictions(Path("predictions.csv"), truth)
        take_review_picture(pictures)
        audit(truth, pictures)
        for seed in range(N_SEEDS):
            print(
                f"Seed {seed}: threes and eights found {label_with_seed(seed, truth)}", flush=True
            )
        os.chdir(ROOT)


if __name__ == "__main__":
    main()
