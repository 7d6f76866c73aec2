"""A run of the labelling page on real images, by a browser that answers the truth.

Run:  .venv/bin/python benchmarks/labelling.py OUTPUT      (about two minutes; needs Chromium)

The images are scikit-learn's handwritten digits with rare threes and eights, 1.5% each. A robot
presses the keys; nothing else is simulated: the project is made by `galaxy-al init`, the server is
the real one. Writes screenshots into OUTPUT and prints what docs/labelling.md says about the run.
"""

from __future__ import annotations

import csv
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import expect, sync_playwright
from sklearn.datasets import load_digits

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.crashing import free_port, start

N_LABELS, BATCH = 240, 30
RARE = {3: "three", 8: "eight"}
KEYS = {"three": "1", "eight": "2", "other": "3"}


def make_images(folder):
    """Write digits as files, few of the rare ones; returns the class of each file."""
    digits = load_digits()
    rng = np.random.default_rng(0)
    kept = [i for i, digit in enumerate(digits.target) if digit not in RARE]
    n_each = round(len(kept) * 0.015 / 0.97)
    for digit in RARE:
        kept += rng.choice(np.flatnonzero(digits.target == digit), n_each, replace=False).tolist()
    truth = {}
    folder.mkdir()
    for number, i in enumerate(rng.permutation(kept).tolist()):
        name = f"digit-{number:04}.png"
        pixels = Image.fromarray((255 - digits.images[i] * 15.9).astype(np.uint8))
        pixels.resize((160, 160), Image.Resampling.BICUBIC).save(folder / name)
        truth[name] = RARE.get(int(digits.target[i]), "other")
    return truth


def label_by_keys(page, truth, n_labels):
    """Press the right key again and again; returns how many rare examples were found by then."""
    caption, found = page.locator("#caption"), []
    for _ in range(n_labels):
        example = caption.inner_text()
        page.keyboard.press(KEYS[truth[example]])
        expect(caption).not_to_have_text(example, timeout=30_000)
        found.append(truth[example] != "other")
        page.wait_for_timeout(60)  # no annotator is faster
    return np.cumsum(found)


def main():
    output = Path(sys.argv[1])
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        truth = make_images(folder / "photos")
        project = folder / "digits"
        command = [sys.executable, "-m", "galaxy_al", "init", project]
        command += ["--images", folder / "photos", "--classes", "three,eight", "--other", "other"]
        subprocess.run([*map(str, command), "--batch-size", str(BATCH)], check=True)
        port = free_port()
        server = start(project, port)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(f"http://localhost:{port}")
            page.get_by_label("Name").fill("Ann")
            page.get_by_role("button", name="Start labelling").click()
            expect(page.locator("#caption")).not_to_be_empty()
            page.wait_for_timeout(500)
            page.screenshot(path=output / "begin.png")
            found = label_by_keys(page, truth, N_LABELS)
            page.wait_for_timeout(3000)
            page.screenshot(path=output / "label.png")
            page.locator("#lines").scroll_into_view_if_needed()
            page.locator("aside").screenshot(path=output / "panel.png")
            page.keyboard.press("g")
            page.wait_for_timeout(2000)
            for at in (0, 2, 3):
                page.locator("#grid .tile").nth(at).click()
            page.screenshot(path=output / "grid.png")
            page.emulate_media(color_scheme="dark")
            page.keyboard.press("f")
            page.wait_for_timeout(3000)
            page.screenshot(path=output / "find.png")
            browser.close()
        server.send_signal(signal.SIGINT)
        server.wait()
        server.stdout.close()
        report(project, folder, truth, found)


def report(project, folder, truth, found):
    run = [sys.executable, "-m", "galaxy_al"]
    subprocess.run([*run, "status", str(project)], check=True)
    subprocess.run([*run, "train", str(project)], check=True)
    table = folder / "predictions.csv"
    command = [*run, "predict", project / "model", folder / "photos", "--output", table]
    subprocess.run([str(part) for part in command], check=True)
    rows = list(csv.DictReader(table.read_text().splitlines()))
    n_rare = sum(name != "other" for name in truth.values())
    print(f"{len(truth):,} images, {n_rare} of them rare.")
    for n in range(40, N_LABELS + 1, 40):
        print(f"{found[n - 1]} rare in {n} labels; at random {n * n_rare / len(truth):.1f}")
    for name in KEYS:
        of_class = [row for row in rows if truth[row["id"]] == name]
        right = sum(row["class"] == name for row in of_class)
        print(f"{name}: {right} of {len(of_class)} predicted right")


if __name__ == "__main__":
    main()
