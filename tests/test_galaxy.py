"""GALAXY against the paper's algorithms written naively (naive_galaxy.py)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galaxy_al import UNLABELED, Galaxy, PoolExhausted, Snapshot
from naive_galaxy import NaiveGalaxy


@st.composite
def tables(draw, max_size=14, max_classes=4):
    """Score tables full of ties, near-ties and saturated rows, in both precisions and orders."""
    size = draw(st.integers(1, max_size))
    n_classes = draw(st.integers(2, max_classes))
    kind = draw(st.sampled_from(["few levels", "smooth", "saturated", "flat"]))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    if kind == "few levels":
        raw = rng.integers(1, 4, size=(size, n_classes)).astype(float)
    elif kind == "smooth":
        raw = rng.random((size, n_classes)) + 1e-3
    elif kind == "saturated":
        raw = np.exp(rng.normal(scale=20, size=(size, n_classes)))
    else:
        raw = np.ones((size, n_classes))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    order = draw(st.sampled_from("CF"))
    return np.asarray(raw / raw.sum(axis=1, keepdims=True), dtype=dtype, order=order)


@st.composite
def pools(draw, **kwargs):
    proba = draw(tables(**kwargs))
    size, n_classes = proba.shape
    truth = draw(st.lists(st.integers(0, n_classes - 1), min_size=size, max_size=size))
    shown = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    labels = np.where(shown, truth, UNLABELED)
    return proba, np.array(truth), labels


def lines_considered(proba):
    return None if proba.shape[1] > 2 else [0]


def known(labels):
    return {i: int(y) for i, y in enumerate(labels) if y != UNLABELED}


@settings(max_examples=1500)
@given(pools(), st.integers(0, 2**32 - 1))
def test_every_query_until_the_pool_is_exhausted_is_one_the_paper_allows(pool, seed):
    proba, truth, labels = pool
    session = Galaxy().start(Snapshot(proba, labels), rng=np.random.default_rng(seed))
    paper, told = NaiveGalaxy(proba, lines_considered(proba)), known(labels)
    while len(told) < len(truth):
        allowed = paper.allowed(told)
        index = session.ask()
        assert index not in told
        if allowed:
            assert index in set().union(*allowed.values())
        session.tell(index, truth[index])
        told[index] = int(truth[index])
    with pytest.raises(PoolExhausted):
        session.ask()


@settings(max_examples=300)
@given(pools(max_size=40, max_classes=3), st.integers(0, 2**32 - 1))
def test_long_batches_that_raise_the_order_many_times_stay_exact(pool, seed):
    proba, truth, labels = pool
    truth[: len(truth) // 2] = 0
    labels[:] = UNLABELED
    labels[0], labels[-1] = truth[0], truth[-1]
    session = Galaxy().start(Snapshot(proba, labels), rng=np.random.default_rng(seed))
    paper, told = NaiveGalaxy(proba, lines_considered(proba)), known(labels)
    while len(told) < len(truth):
        allowed = paper.allowed(told)
        index = session.ask()
        assert not allowed or index in set().union(*allowed.values())
        session.tell(index, truth[index])
        told[index] = int(truth[index])


@settings(max_examples=1500)
@given(pools(), st.data())
def test_relabelling_withdrawing_skipping_and_labels_from_elsewhere_stay_exact(pool, data):
    proba, _truth, labels = pool
    size, n_classes = proba.shape
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    session = Galaxy().start(Snapshot(proba, labels), rng=rng)
    paper, told, skipped = NaiveGalaxy(proba, lines_considered(proba)), known(labels), set()
    moves = st.sampled_from(["answer", "answer", "answer", "tell", "withdraw", "skip", "release"])
    for _ in range(data.draw(st.integers(1, 2 * size))):
        move = data.draw(moves)
        anyone = data.draw(st.integers(0, size - 1))
        label = data.draw(st.integers(0, n_classes - 1))
        if move in ("answer", "release"):
            if len(told) + len(skipped) == size:
                with pytest.raises(PoolExhausted):
                    session.ask()
                continue
            allowed = paper.allowed(told, skipped)
            index = session.ask()
            assert index not in told
            assert index not in skipped
            assert not allowed or index in set().union(*allowed.values())
            if move == "release":
                session.release(index)
            else:
                session.tell(index, label)
                told[index] = label
        elif move == "tell":
            session.tell(anyone, label)
            told[anyone] = label
            skipped.discard(anyone)
        elif move == "withdraw" and anyone in told:
            session.withdraw(anyone)
            del told[anyone]
        elif move == "skip":
            session.skip(anyone)
            told.pop(anyone, None)
            skipped.add(anyone)
    assert session.labels == told
    assert session.skipped == skipped
