"""GALAXY against the paper's algorithms written naively (naive_galaxy.py)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galaxy_al import UNLABELED, Galaxy, PoolExhausted, Snapshot
from galaxy_al.strategies.confidence import Confidence
from support.naive_galaxy import NaiveGalaxy, midpoints, ranking
from support.random_pools import pools

pytestmark = pytest.mark.usefixtures("bucket_sizes")


def lines_considered(proba):
    return None if proba.shape[1] > 2 else [0]


def known(labels):
    return {i: int(y) for i, y in enumerate(labels) if y != UNLABELED}


@pytest.mark.slow
@settings(max_examples=1000)
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


@pytest.mark.slow
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


@pytest.mark.slow
@settings(max_examples=1000)
@given(pools(), st.data())
def test_relabelling_withdrawing_skipping_and_labels_from_elsewhere_stay_exact(pool, data):
    proba, _truth, labels = pool
    size, n_classes = proba.shape
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    free = np.flatnonzero(labels == UNLABELED).tolist()
    skipped = data.draw(st.sets(st.sampled_from(free), max_size=3)) if free else set()
    session = Galaxy().start(Snapshot(proba, labels, skipped=skipped), rng=rng)
    paper, told = NaiveGalaxy(proba, lines_considered(proba)), known(labels)
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
            session.state.withdraw(anyone)
            del told[anyone]
        elif move == "skip":
            session.skip(anyone)
            told.pop(anyone, None)
            skipped.add(anyone)
    assert session.state.labels == told
    assert session.state.skipped == skipped


@pytest.mark.slow
@settings(max_examples=300)
@given(pools(), st.data())
def test_with_questions_in_flight_the_likeliest_class_stands_in_for_the_answer(pool, data):
    proba, truth, labels = pool
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    session = Galaxy().start(Snapshot(proba, labels), rng=rng)
    paper, told, pending = NaiveGalaxy(proba, lines_considered(proba)), known(labels), []
    while len(told) + len(pending) < len(truth):
        move = data.draw(st.sampled_from(["ask", "ask", "tell", "release"])) if pending else "ask"
        if move == "ask":
            assumed = {i: int(proba[i].argmax()) for i in pending}
            allowed = paper.allowed(told | assumed)
            index = session.ask()
            assert index not in told
            assert index not in pending
            assert not allowed or index in set().union(*allowed.values())
            pending.append(index)
        else:
            index = pending.pop(data.draw(st.integers(0, len(pending) - 1)))
            if move == "release":
                session.release(index)
            else:
                session.tell(index, truth[index])
                told[index] = int(truth[index])
    assert list(session.state.pending) == pending


@pytest.mark.slow
@settings(max_examples=300)
@given(pools(), st.integers(0, 2**32 - 1))
def test_rotating_takes_the_classes_in_turn_each_at_an_order_of_its_own(pool, seed):
    proba, truth, labels = pool
    session = Galaxy(across="rotate").start(
        Snapshot(proba, labels), rng=np.random.default_rng(seed)
    )
    paper, told = NaiveGalaxy(proba, lines_considered(proba)), known(labels)
    n = len(paper.classes)
    # Where the turn begins is random: follow every beginning that fits what was asked.
    possible = [(begin, dict.fromkeys(paper.classes, 1)) for begin in range(n)]
    while len(told) < len(truth):
        index = session.ask()
        fitting = []
        for turn, orders in possible:
            for target in ((turn + i) % n for i in range(n)):
                found = first_midpoints(paper.rankings[target], orders[target], told, target)
                if found is not None:
                    order, middle = found
                    if index in middle:
                        fitting.append(((target + 1) % n, orders | {target: order}))
                    break
            else:
                fitting.append((turn, orders))
        assert fitting
        possible = fitting
        session.tell(index, truth[index])
        told[index] = int(truth[index])


def first_midpoints(ranked, least_order, labels, k):
    for order in range(least_order, len(ranked) + 1):
        length, middle = midpoints(ranked, order, labels, k)
        if length is not None:
            return order, middle
    return None


@pytest.mark.slow
@settings(max_examples=300)
@given(st.integers(2, 16), st.data())
def test_with_two_classes_the_one_line_allows_what_both_would(size, data):
    # Shares of 1,024 that are all different: p and 1 - p are exact and nothing ties.
    shares = data.draw(st.lists(st.integers(1, 1023), min_size=size, max_size=size, unique=True))
    share = np.array(shares) / 1024
    proba = np.stack([share, 1 - share], axis=1)
    truth = np.array(data.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)))
    labels = np.full(size, UNLABELED)
    labels[:2] = truth[:2]
    session = Galaxy().start(Snapshot(proba, labels), rng=np.random.default_rng(0))
    both, told = NaiveGalaxy(proba, classes=[0, 1]), known(labels)
    while len(told) < size:
        allowed = both.allowed(told)
        index = session.ask()
        assert not allowed or index in set().union(*allowed.values())
        session.tell(index, truth[index])
        told[index] = int(truth[index])


def evenly_spaced(size):
    share = np.linspace(0.01, 0.99, size)
    return np.stack([share, 1 - share], axis=1)


def test_bisection_takes_the_logarithm_and_then_both_sides_of_the_cut_in_turn():
    size, first_positive = 1025, 700
    truth = np.where(np.arange(size) >= first_positive, 0, 1)
    labels = np.full(size, UNLABELED)
    labels[[0, -1]] = 1, 0
    session = Galaxy().start(Snapshot(evenly_spaced(size), labels), rng=np.random.default_rng(0))
    asked = []
    for _ in range(40):
        asked.append(session.ask())
        session.tell(asked[-1], truth[asked[-1]])
    assert asked[0] == 512
    assert {first_positive - 1, first_positive} <= {*asked[:10], 0, size - 1}
    around = sorted({*asked[10:], first_positive - 1, first_positive})
    assert max(abs(i - first_positive) for i in asked[12:]) <= 20
    assert set(range(first_positive - 10, first_positive + 10)) <= set(asked)
    assert around[0] < first_positive < around[-1]


@pytest.mark.slow
def test_ties_between_classes_are_broken_evenly():
    # Three blocks of nine, one for each class, that differ only in which class is which: on each
    # class's ranking the gap between its two labels is the same, with a midpoint of its own.
    share = np.linspace(0.4, 0.8, 9)
    rest = (1 - share) / 2
    proba = np.concatenate([np.roll(np.stack([share, rest, rest]), k, axis=0).T for k in range(3)])
    labels = np.full(27, UNLABELED)
    labels[[8, 17, 26]] = 0, 1, 2
    labels[[0, 9, 18]] = 1, 2, 0
    allowed = NaiveGalaxy(proba).allowed(known(labels))
    assert sorted(allowed) == [0, 1, 2]
    counts = dict.fromkeys(allowed, 0)
    for seed in range(1500):
        index = Galaxy().start(Snapshot(proba, labels), rng=np.random.default_rng(seed)).ask()
        (target,) = [k for k in allowed if index in allowed[k]]
        counts[target] += 1
    assert np.abs(np.array(list(counts.values())) / 1500 - 1 / 3).max() < 0.05


def test_a_class_that_comes_up_in_the_middle_gets_its_line():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=200)
    labels = np.full(200, UNLABELED)
    labels[:2] = 0, 1
    session = Galaxy().start(Snapshot(proba, labels), rng=rng)
    paper, told = NaiveGalaxy(proba), {0: 0, 1: 1}
    for step in range(60):
        allowed = paper.allowed(told)
        index = session.ask()
        assert index in set().union(*allowed.values())
        told[index] = 2 if step % 5 == 4 else step % 2
        session.tell(index, told[index])


def test_while_there_is_no_path_the_explorer_decides():
    proba = np.random.default_rng(0).dirichlet(np.ones(3), size=50)
    snapshot = Snapshot(proba)
    explorer = Confidence().start(snapshot, rng=np.random.default_rng(0))
    session = Galaxy(explore=Confidence()).start(snapshot, rng=np.random.default_rng(0))
    for _ in range(30):
        index = session.ask()
        assert index == explorer.ask()
        for each in (session, explorer):
            each.tell(index, 2)
    for each in (session, explorer):
        each.tell(0, 2)
        each.skip(1)
    waiting = session.ask()
    assert waiting == explorer.ask()
    session.release(waiting)
    assert session.ask() == waiting
    session.tell(waiting, 0)
    assert session.ask() in set().union(*NaiveGalaxy(proba).allowed(session.state.labels).values())


@pytest.mark.slow
def test_exploring_by_default_is_uniform():
    snapshot = Snapshot(np.full((4, 3), 1 / 3), labels=[2, -1, -1, -1])
    first = [Galaxy().start(snapshot, rng=np.random.default_rng(s)).ask() for s in range(3000)]
    assert np.abs(np.bincount(first, minlength=4)[1:] / 3000 - 1 / 3).max() < 0.04


def test_an_unknown_way_across_the_classes_is_refused():
    with pytest.raises(ValueError, match=r"'best'\. Choose from: rotate, shortest\."):
        Galaxy(across="best")


@pytest.mark.slow
def test_many_questions_in_flight_stay_fast_and_are_all_different():
    proba = np.random.default_rng(0).dirichlet(np.ones(3), size=3000)
    session = Galaxy().start(
        Snapshot(proba, labels=[0, 1, 2, *[UNLABELED] * 2997]), rng=np.random.default_rng(0)
    )
    assert len({session.ask() for _ in range(2997)}) == 2997


def test_a_held_example_is_not_asked_and_its_likeliest_class_stands_in():
    proba = evenly_spaced(101)
    labels = np.full(101, UNLABELED)
    labels[[0, 100]] = 1, 0
    session = Galaxy().start(Snapshot(proba, labels), rng=np.random.default_rng(0))
    session.state.hold(60)
    assert session.ask() == 30
    with pytest.raises(ValueError, match="Example 60 is already"):
        session.state.hold(60)


def test_an_explorer_must_be_a_strategy():
    with pytest.raises(ValueError, match="explore must be a strategy, got 'random'"):
        Galaxy(explore="random")


@given(pools(max_size=25), st.integers(0))
def test_the_next_question_is_between_the_ends_that_a_ranking_shows(pool, seed):
    proba, _, labels = pool
    session = Galaxy().start(Snapshot(proba, labels), rng=np.random.default_rng(seed))
    views = session.rankings()
    if (labels != UNLABELED).all() or not views:
        return
    asked = session.ask()
    on = [ranking(proba, view.target).index(asked) for view in views]
    assert any(view.low <= rank <= view.high for view, rank in zip(views, on))
