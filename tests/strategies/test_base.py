"""What every strategy in the registry must do, and the definitions of the simple ones."""

import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galaxy_al import STRATEGIES, UNLABELED, GalaxyError, PoolExhausted, Snapshot, Strategy
from galaxy_al.strategies import make_strategy
from support.every_strategy import every_strategy, last_layer, some_pool
from support.random_pools import pools, tables


def start(name, proba, labels, seed=0, **kwargs):
    embeddings, head = last_layer(proba)
    return make_strategy(name).start(
        Snapshot(proba, labels, embeddings, head, **kwargs),
        rng=np.random.default_rng(seed),
        budget=7,
    )


def answers(session, truth, n):
    asked = []
    for _ in range(n):
        asked.append(session.ask())
        session.tell(asked[-1], truth[asked[-1]])
    return asked


@every_strategy
@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("known", ["nothing", "one class", "some"])
def test_the_whole_pool_is_asked_once_and_then_it_is_exhausted(name, n_classes, dtype, known):
    proba, truth, labels = some_pool(n_classes=n_classes, dtype=dtype)
    if known == "nothing":
        labels[:] = UNLABELED
    elif known == "one class":
        labels[labels != 0] = UNLABELED
    embeddings, head = last_layer(proba)
    arrays = proba, labels, embeddings, *head
    before = [array.copy() for array in arrays]
    session = make_strategy(name).start(
        Snapshot(proba, labels, embeddings, head), rng=np.random.default_rng(0), budget=7
    )
    free = np.flatnonzero(labels == UNLABELED)
    asked = answers(session, truth, len(free))
    assert sorted(asked) == free.tolist()
    with pytest.raises(PoolExhausted, match="of 60 examples 60 are labelled"):
        session.ask()
    for array, copy in zip(arrays, before):
        np.testing.assert_array_equal(array, copy)


@every_strategy
def test_the_same_seed_asks_the_same_questions(name):
    proba, truth, labels = some_pool()
    first = answers(start(name, proba, labels, seed=3), truth, 40)
    assert answers(start(name, proba, labels, seed=3), truth, 40) == first


@every_strategy
def test_a_session_goes_on_after_being_pickled_in_the_middle_of_a_batch(name):
    proba, truth, labels = some_pool()
    session = start(name, proba, labels)
    answers(session, truth, 5)
    waiting = session.ask()
    copy = pickle.loads(pickle.dumps(session))
    for each in (session, copy):
        each.tell(waiting, truth[waiting])
    assert answers(copy, truth, 30) == answers(session, truth, 30)


@pytest.mark.slow
@every_strategy
@settings(max_examples=100)
@given(pools(max_size=12), st.data())
def test_whatever_is_done_only_free_examples_are_asked(name, pool, data):
    proba, truth, labels = pool
    session = start(name, proba, labels, seed=data.draw(st.integers(0, 99)))
    told = {i: int(y) for i, y in enumerate(labels) if y != UNLABELED}
    pending, skipped = set(), set()
    moves = ["ask", "ask", "ask", "tell", "tell any", "release", "skip", "skip any", "withdraw"]
    moves += ["hold", "restore"]
    for move in data.draw(st.lists(st.sampled_from(moves), max_size=30)):
        anyone = data.draw(st.integers(0, len(truth) - 1))
        if move == "ask":
            if len(told.keys() | pending | skipped) == len(truth):
                with pytest.raises(PoolExhausted):
                    session.ask()
            else:
                index = session.ask()
                assert index not in told.keys() | pending | skipped
                pending.add(index)
        elif move in ("tell", "release", "skip") and pending:
            index = data.draw(st.sampled_from(sorted(pending)))
            pending.discard(index)
            if move == "tell":
                session.tell(index, truth[index])
                told[index] = int(truth[index])
            elif move == "release":
                session.release(index)
            else:
                session.skip(index)
                skipped.add(index)
        elif move == "tell any":
            session.tell(anyone, truth[anyone])
            told[anyone] = int(truth[anyone])
            pending.discard(anyone)
            skipped.discard(anyone)
        elif move == "skip any":
            session.skip(anyone)
            told.pop(anyone, None)
            pending.discard(anyone)
            skipped.add(anyone)
        elif move == "withdraw" and anyone in told:
            session.state.withdraw(anyone)
            del told[anyone]
        elif move == "hold" and anyone not in told.keys() | pending | skipped:
            session.state.hold(anyone)
            pending.add(anyone)
        elif move == "restore" and anyone in skipped:
            session.state.restore(anyone)
            skipped.remove(anyone)
    assert session.state.labels == told
    assert set(session.state.pending) == pending
    assert session.state.skipped == skipped


@every_strategy
def test_skipped_examples_of_the_snapshot_are_not_asked(name):
    proba, truth, labels = some_pool()
    free = np.flatnonzero(labels == UNLABELED)
    session = start(name, proba, labels, skipped=free[:10])
    assert sorted(answers(session, truth, len(free) - 10)) == free[10:].tolist()
    with pytest.raises(PoolExhausted):
        session.ask()


@pytest.mark.slow
@every_strategy
def test_a_thousand_classes(name):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(1000), size=28)
    truth = rng.integers(0, 1000, 28)
    labels = np.where(np.arange(28) < 20, truth, UNLABELED)
    assert sorted(answers(start(name, proba, labels), truth, 8)) == list(range(20, 28))


@every_strategy
def test_wrong_calls_are_refused_and_the_session_stays_usable(name):
    proba, truth, labels = some_pool()
    session = start(name, proba, labels)
    index = session.ask()
    session.release(index)
    labeled = int(np.flatnonzero(labels != UNLABELED)[0])
    wrong = [
        (lambda: session.tell(60, 0), "0 to 59, got 60"),
        (lambda: session.tell(-1, 0), "0 to 59, got -1"),
        (lambda: session.tell(0.5, 0), "0 to 59, got 0.5"),
        (lambda: session.tell(index, 3), "class 0 to 2, got 3"),
        (lambda: session.tell(index, -1), "class 0 to 2, got -1"),
        (lambda: session.tell(index, "cat"), "class 0 to 2, got 'cat'"),
        (lambda: session.release(index), "not waiting for an answer"),
        (lambda: session.release(labeled), "not waiting for an answer"),
        (lambda: session.state.withdraw(index), "no label to withdraw"),
        (lambda: session.skip(99), "0 to 59, got 99"),
        (lambda: session.tell(True, 0), "0 to 59, got True"),
        (lambda: session.tell(index, True), "class 0 to 2, got True"),
        (lambda: session.state.hold(labeled), "already labelled"),
        (lambda: session.state.restore(index), "not skipped: nothing to restore"),
    ]
    for call, message in wrong:
        with pytest.raises(ValueError, match=message):
            call()
    assert len(answers(session, truth, 50)) == 50


def test_strategies_are_described_differently_in_one_short_line():
    summaries = [strategy.summary for strategy in STRATEGIES.values()]
    assert len(set(summaries)) == len(summaries)
    for strategy in STRATEGIES.values():
        assert 10 < len(strategy.summary) < 70
        assert strategy.paper.startswith("none:") or re.search(r"\b(19|20)\d\d$", strategy.paper)


@every_strategy
def test_what_a_strategy_needs_and_the_snapshot_lacks_is_named(name):
    proba, _, labels = some_pool()
    embeddings, head = last_layer(proba)
    rng, strategy = np.random.default_rng(0), make_strategy(name)
    given = {"embeddings": embeddings, "head": head}
    strategy.start(Snapshot(proba, labels, **{n: given[n] for n in strategy.needs}), rng=rng).ask()
    for need in strategy.needs:
        rest = {other: given[other] for other in strategy.needs if other != need}
        lacking = Snapshot(proba, labels, **rest)
        with pytest.raises(ValueError, match=f"Strategy '{name}' needs {need}"):
            strategy.start(lacking, rng=rng)
        if type(strategy).rank is not Strategy.rank:
            with pytest.raises(ValueError, match=f"The snapshot has no {need}"):
                make_strategy(name).rank(lacking, 3, rng)


@every_strategy
def test_embeddings_that_are_not_finite_are_refused_by_those_who_need_them(name):
    proba, _, labels = some_pool()
    embeddings, head = last_layer(proba)
    embeddings[17, 2] = np.nan
    strategy = make_strategy(name)

    def ask():
        snapshot = Snapshot(proba, labels, embeddings, head)
        return strategy.start(snapshot, rng=np.random.default_rng(0)).ask()

    if "embeddings" in strategy.needs:
        with pytest.raises(ValueError, match="row 17 is not"):
            ask()
    else:
        assert labels[ask()] == UNLABELED


@every_strategy
def test_embeddings_in_half_precision_are_taken(name):
    proba, truth, labels = some_pool()
    embeddings, head = last_layer(proba)
    snapshot = Snapshot(proba, labels, embeddings.astype(np.float16), head)
    session = make_strategy(name).start(snapshot, rng=np.random.default_rng(0), budget=7)
    assert len(set(answers(session, truth, 20))) == 20


@every_strategy
def test_a_pool_of_duplicates_is_asked_to_the_end(name):
    proba, labels = np.full((30, 3), 1 / 3), np.full(30, UNLABELED)
    labels[:4] = 0, 1, 2, 2
    truth, embeddings = np.arange(30) % 3, np.ones((30, 5))
    head = np.ones((3, 5)), np.zeros(3)
    snapshot = Snapshot(proba, labels, embeddings, head)
    session = make_strategy(name).start(snapshot, rng=np.random.default_rng(0), budget=7)
    assert sorted(answers(session, truth, 26)) == list(range(4, 30))


@pytest.mark.parametrize("name", [n for n, s in STRATEGIES.items() if s.rank is not Strategy.rank])
def test_a_strategy_that_ranks_gives_so_many_askable_indices_and_no_index_twice(name):
    strategy = make_strategy(name)
    proba, _, labels = some_pool()
    free = np.flatnonzero(labels == UNLABELED)
    snapshot = Snapshot(proba, labels, *last_layer(proba), skipped=free[:5])
    for budget in (1, 2, 13, 45, 44, 1000):
        ranked = strategy.rank(snapshot, budget, np.random.default_rng(0)).tolist()
        assert len(ranked) == len(set(ranked)) == min(budget, 45)
        assert set(ranked) <= set(free[5:].tolist())


def test_an_unknown_strategy_is_refused_with_the_choice():
    with pytest.raises(
        ValueError,
        match=r"Unknown strategy 'galxy'\. Choose from: badge, bait, base, cluster-margin, con",
    ):
        make_strategy("galxy")


@every_strategy
def test_a_budget_must_be_positive_and_the_generator_one_of_numpys(name):
    proba = some_pool()[0]
    snapshot = Snapshot(proba, None, *last_layer(proba))
    with pytest.raises(ValueError, match="budget must be a whole number of at least 1, got 0"):
        make_strategy(name).start(snapshot, rng=np.random.default_rng(0), budget=0)
    with pytest.raises(ValueError, match=r"rng must be a numpy\.random\.Generator, got 0"):
        make_strategy(name).start(snapshot, rng=0)


def test_a_released_example_is_asked_again_next_and_a_withdrawn_one_when_its_turn_comes():
    proba, truth, labels = some_pool()
    session = start("confidence", proba, labels)
    first = session.ask()
    session.release(first)
    assert session.ask() == first
    session.tell(first, truth[first])
    session.state.withdraw(first)
    assert session.ask() != first
    assert first in answers(session, truth, 49)


def test_a_strategy_that_ranks_nothing_is_an_error_and_no_endless_loop():
    class Nothing(Strategy):
        def rank(self, snapshot, budget, rng):
            return np.array([], dtype=int)

    session = Nothing().start(Snapshot(some_pool()[0]), rng=np.random.default_rng(0))
    with pytest.raises(GalaxyError, match=r"Nothing\.rank gave no example"):
        session.ask()


SCORES = {
    "confidence": lambda row, other: max(row),
    "margin": lambda row, other: sorted(row)[-1] - sorted(row)[-2],
    "entropy": lambda row, other: sum(p * np.log(p) for p in row if p > 0),
    "most-likely-positive": lambda row, other: -max(p for k, p in enumerate(row) if k != other),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SCORES))
@settings(max_examples=100)
@given(tables(max_size=20), st.data())
def test_simple_strategies_ask_in_the_order_of_their_definition(name, proba, data):
    size, n_classes = proba.shape
    other = data.draw(st.integers(0, n_classes - 1))
    labels = np.array(data.draw(st.lists(st.integers(-1, 0), min_size=size, max_size=size)))
    budget = data.draw(st.integers(1, size))
    snapshot = Snapshot(proba, labels, other=other)
    chosen = make_strategy(name).rank(snapshot, budget, np.random.default_rng(0)).tolist()
    free = [i for i in range(size) if labels[i] == UNLABELED]
    score = {i: SCORES[name](proba[i].astype(float).tolist(), other) for i in free}
    assert len(chosen) == len(set(chosen)) == min(budget, len(free))
    assert set(chosen) <= set(free)
    # Rounding may order near-ties differently, never more than that.
    ordered = sorted(score.values())[: len(chosen)]
    np.testing.assert_allclose([score[i] for i in chosen], ordered, atol=1e-6)


@pytest.mark.slow
def test_random_is_uniform():
    snapshot = Snapshot(np.full((10, 2), 0.5))
    rng = np.random.default_rng(0)
    draws = [tuple(make_strategy("random").rank(snapshot, 2, rng).tolist()) for _ in range(9000)]
    counts = np.zeros((10, 10))
    for pair in draws:
        counts[pair] += 1
    expected = 9000 / 90
    off_diagonal = ~np.eye(10, dtype=bool)
    assert counts.diagonal().sum() == 0
    chi_squared = ((counts[off_diagonal] - expected) ** 2 / expected).sum()
    assert chi_squared < 150  # 89 degrees of freedom: 1 in 10,000 lies above 146
