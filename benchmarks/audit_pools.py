"""What an audit starts from: ten pools with models of few labels, and three to develop on.

The labels are collected by fair-cuts and the models are the default head's. Two models of the ten
are wrong on purpose. Training takes about 20 minutes; what comes out is kept in FOLDER.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np

os.environ.setdefault("OMP_NUM_THREADS", "1")

from galaxy_al import Learner
from galaxy_al.models.decisions import DEFAULT_RULE, choose_thresholds
from galaxy_al.simulation import play_round
from galaxy_al.snapshot import balanced_proba
from pools import FOLDER as DATA
from pools import load

FOLDER = Path(
    os.environ.get("GALAXY_AL_AUDITS", str(Path(tempfile.gettempdir()) / "galaxy-al-audits"))
)
SIZES = (100, 200, 500, 1000)  # labels
N_LABELS = 500  # when an audit begins
DEVELOP = ("cifar100-3", "letters-9", "svhn-3 of a missed cluster")
GOOD = (
    "cifar10-2",
    "cifar10-3",
    "cifar100-2",
    "cifar100-10",
    "svhn-2",
    "banking77-3",
    "letters-3",
    "satellite-2",
)
BAD = ("cifar100-2 of moved odds", "cifar10 of a missed cluster")
JUDGE = GOOD + BAD


def pool_of(name):
    """Vectors, the truth, and which examples the labels never show to the model."""
    if name == "cifar10 of a missed cluster":  # deer (4) and frogs (6) are one class, 1 in 50
        return _two_kinds("cifar10-embeddings.npz", rare=(6, 4), count=500)
    if name == "svhn-3 of a missed cluster":  # sixes and nines are one class
        return _two_kinds("svhn-embeddings.npz", rare=(6, 9), count=700)
    vectors, truth = load(name.partition(" of ")[0])
    return np.asarray(vectors), np.asarray(truth), np.zeros(len(truth), dtype=bool)


def _two_kinds(file, rare, count):
    """Two kinds of examples are one rare class, and the model knows only the first."""
    content, rng = np.load(DATA / file), np.random.default_rng(0)
    classes = content["labels"]
    kinds = [rng.permutation(np.flatnonzero(classes == kind))[:count] for kind in rare]
    rows = np.sort(np.concatenate([*kinds, np.flatnonzero(~np.isin(classes, rare))]))
    vectors, kind = content["embeddings"][rows].astype(np.float32), classes[rows]
    return vectors, np.where(np.isin(kind, rare), 0, 1), kind == rare[1]


def trained(name, seed=0):
    """The models of a pool after 100 to 1,000 labels; from FOLDER if it is there.

    Of each size: ``labels`` (indices in the order of the questions), ``is_random``, ``proba``,
    ``held_out`` (probabilities of the labelled examples, in the order of ``labels``),
    ``priors``.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name.replace(' ', '-')}-{seed}.npz"
    if not path.exists():
        np.savez(path, **_train(name, seed))
    return np.load(path)


def _train(name, seed):
    vectors, truth, is_hidden = pool_of(name)
    kept = np.flatnonzero(~is_hidden)
    learner = Learner(vectors[kept], int(truth.max()) + 1, seed=seed)
    known, found = [], {"truth": truth}
    while len(known) < min(SIZES[-1], len(kept) // 4):
        step = play_round(learner, truth[kept])
        known += step.indices
        if len(known) not in SIZES:
            continue
        model, n = learner.model, len(known)
        order = np.searchsorted(model.held_out.indices, known)
        proba = np.asarray(model.proba(vectors), dtype=np.float32)
        if "moved" in name:  # far too sure, and of too few
            odds = 2 * np.log(np.clip(proba, 1e-7, None)) - np.array([3.0, 0.0])
            proba = np.exp(odds - odds.max(axis=1, keepdims=True)).astype(np.float32)
            proba /= proba.sum(axis=1, keepdims=True)
        if is_hidden.any():
            proba[is_hidden] = [1e-4, 1 - 1e-4]
        found |= {
            f"labels{n}": kept[np.array(known)],
            f"is_random{n}": np.isin(known, list(learner.state.random)),
            f"proba{n}": proba,
            f"held_out{n}": model.held_out.proba[order],
            f"priors{n}": model.class_priors,
        }
    return found


def beginning(name, n_labels=N_LABELS, seed=0):
    """What is known when an audit begins, and the truth."""
    content = trained(name, seed)
    n = max(size for size in SIZES if size <= n_labels and f"labels{size}" in content)
    proba, known = content[f"proba{n}"], content[f"labels{n}"]
    held_out, priors = content[f"held_out{n}"], content[f"priors{n}"]
    decision = choose_thresholds(DEFAULT_RULE, proba, proba.mean(axis=0))
    free = np.setdiff1d(np.arange(len(proba)), known)
    return SimpleNamespace(
        name=name,
        truth=content["truth"].astype(np.intp),
        proba=proba,
        decided=decision.classes(proba),
        known=known,
        is_random=content[f"is_random{n}"],
        held_out_decided=decision.classes(held_out),
        balanced=balanced_proba(proba, priors).argmax(axis=1),
        held_out_balanced=balanced_proba(held_out, priors).argmax(axis=1),
        free=free,
    )


if __name__ == "__main__":
    import sys

    for name in sys.argv[1:] or (*DEVELOP, *JUDGE):
        content = trained(name)
        print(name, {key: content[key].shape for key in content if "labels" in key}, flush=True)
