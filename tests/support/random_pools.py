"""Random score tables and pools for property tests."""

import numpy as np
from hypothesis import strategies as st

from galaxy_al import UNLABELED


@st.composite
def tables(draw, max_size=14, max_classes=4):
    """Score tables full of ties, near-ties and saturated rows, in both precisions and orders."""
    size = draw(st.integers(1, max_size))
    n_classes = draw(st.integers(2, max_classes))
    kind = draw(st.sampled_from(["few levels", "smooth", "saturated", "flat", "sums near 1"]))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    if kind == "few levels":
        raw = rng.integers(1, 4, size=(size, n_classes)).astype(float)
    elif kind == "smooth":
        raw = rng.random((size, n_classes)) + 1e-3
    elif kind in ("saturated", "sums near 1"):
        raw = np.exp(rng.normal(scale=20, size=(size, n_classes)))
    else:
        raw = np.ones((size, n_classes))
    proba = raw / raw.sum(axis=1, keepdims=True)
    if kind == "sums near 1":
        proba *= 1 + rng.choice([1e-16, 3e-7, 5e-4]) * rng.normal(size=(size, 1)).clip(-1.5, 1.5)
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    order = draw(st.sampled_from("CF"))
    return np.asarray(proba, dtype=dtype, order=order)


@st.composite
def pools(draw, **kwargs):
    proba = draw(tables(**kwargs))
    size, n_classes = proba.shape
    truth = draw(st.lists(st.integers(0, n_classes - 1), min_size=size, max_size=size))
    shown = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    labels = np.where(shown, truth, UNLABELED)
    return proba, np.array(truth), labels
