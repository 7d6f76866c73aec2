"""Find-all against its definition: of the free examples, the one most likely to be rare."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from galaxy_al import Snapshot
from galaxy_al.errors import InvalidArgument
from galaxy_al.strategies import FindAll


def scored(size, n_classes, seed):
    """Probabilities with ties, in eighths."""
    rng = np.random.default_rng(seed)
    raw = rng.integers(0, 4, (size, n_classes)) + np.eye(n_classes)[n_classes - 1]
    return raw / raw.sum(axis=1, keepdims=True)


def most_likely(proba, other, free):
    """The definition: the largest probability of all rare classes together, the first of equals."""
    rare = [k for k in range(proba.shape[1]) if k != other]
    return min(free, key=lambda index: (-proba[index, rare].sum(), index))


@given(seed=st.integers(0, 1000), other=st.integers(0, 2), budget=st.integers(1, 5), data=st.data())
def test_every_question_is_the_most_likely_free_example(seed, other, budget, data):
    proba, truth = scored(25, 3, seed), np.random.default_rng(seed).integers(0, 3, 25)
    labels = np.full(25, -1)
    labels[:3] = [0, 1, 2]
    session = FindAll().start(
        Snapshot(proba, labels, other=other), rng=np.random.default_rng(0), budget=budget
    )
    free, asked = set(range(3, 25)), []
    while free:
        action = data.draw(st.sampled_from(["answer", "answer", "ask", "skip", "release", "undo"]))
        if action == "release" and asked:
            free.add(index := asked.pop())
            session.release(index)
        elif action == "undo" and len(session.state.labels) > 3:
            free.add(index := list(session.state.labels)[-1])
            session.state.withdraw(index)
        index = session.ask()
        assert index == most_likely(proba, other, free)
        free.remove(index)
        if action == "answer":
            session.tell(index, int(truth[index]))
        elif action == "skip":
            session.skip(index)
        else:
            asked.append(index)


def test_while_no_rare_class_has_a_label_it_asks_at_random():
    proba, labels = scored(200, 3, 0), np.full(200, -1)
    labels[:5] = 2
    asked = set()
    for seed in range(5):
        session = FindAll().start(Snapshot(proba, labels), rng=np.random.default_rng(seed))
        index = session.ask()
        assert index in session.state.random
        asked.add(index)
    assert len(asked) > 1


def test_with_embeddings_it_also_looks_for_outliers():
    proba, labels = scored(200, 2, 0), np.full(200, -1)
    labels[:5] = 1
    embeddings = np.random.default_rng(0).normal(size=(200, 2))
    embeddings[-1] = 50
    session = FindAll().start(Snapshot(proba, labels, embeddings), rng=np.random.default_rng(0))
    asked = [session.ask() for _ in range(20)]
    assert 199 in asked
    assert 0 < len(session.state.random) < 20


def test_fewer_and_fewer_questions_look_for_a_missing_class():
    proba, labels = scored(2000, 3, 0), np.full(2000, -1)
    labels[0] = 0
    session = FindAll().start(Snapshot(proba, labels), rng=np.random.default_rng(0))
    n_random = []
    for _ in range(400):
        session.tell(session.ask(), 2)
        n_random.append(len(session.state.random))
    assert n_random[49] > 25
    assert n_random[399] - n_random[199] < n_random[199]
    # The share that a naive sum of chances expects: 50 / (n + 51) after n random labels.
    expected, n = 0.0, 0.0
    for _ in range(400):
        n += 50 / (n + 51)
        expected = n
    assert n_random[399] == pytest.approx(expected, rel=0.15)
    session.tell(1999, 1)  # now nothing is missing
    before = len(session.state.random)
    for _ in range(50):
        session.tell(session.ask(), 2)
    assert len(session.state.random) == before


def test_without_discovery_it_asks_the_most_likely_although_a_class_is_missing():
    proba, labels = scored(100, 3, 0), np.full(100, -1)
    labels[0] = 0
    session = FindAll(discover=0).start(Snapshot(proba, labels), rng=np.random.default_rng(0))
    assert session.ask() == most_likely(proba, 2, range(1, 100))


def test_a_search_that_looks_backwards_is_refused():
    with pytest.raises(InvalidArgument, match="discover must be a number of at least 0, got -1"):
        FindAll(discover=-1)
