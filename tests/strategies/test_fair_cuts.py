"""Fair cuts against their definition written naively."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galaxy_al import UNLABELED, Learner, Snapshot, simulate
from galaxy_al.strategies import FairCuts, Galaxy, Outliers
from galaxy_al.strategies.label_state import LabelState
from support.naive_galaxy import ranking
from support.noisy_pools import rare_found
from support.random_pools import pools

ONLY_CUTS = FairCuts(discover=0, sample=0)


def naive_questions(proba, target, current, free, embeddings, spread):
    """What may be asked about a class: at each cut with the fewest labels on its wrong side."""
    ranked = ranking(proba, target)
    labeled = [rank for rank, node in enumerate(ranked) if node in current]

    def n_wrong(cut):
        below = [current[ranked[rank]] == target for rank in labeled[:cut]]
        above = [current[ranked[rank]] != target for rank in labeled[cut:]]
        return sum(below) + sum(above)

    wrong = [n_wrong(cut) for cut in range(len(labeled) + 1)]
    ends = [-1, *labeled, len(ranked)]
    asked = set()
    for cut in (cut for cut, count in enumerate(wrong) if count == min(wrong)):
        middle = (ends[cut] + ends[cut + 1]) // 2
        # The nearest ranks; of two that are as near the higher one first.
        ranks = [rank for rank, node in enumerate(ranked) if node in free]
        ranks.sort(key=lambda rank: (abs(rank - middle), -rank))
        n_near = max(min(spread, list(current.values()).count(target)), 1)
        near = [ranked[rank] for rank in ranks[:n_near]]
        asked |= set(farthest(near, current, embeddings))
    return asked


def farthest(near, current, embeddings):
    """Those whose nearest labelled example is farthest; the nearest to the cut without vectors."""
    if embeddings is None:
        return near[:1]
    apart = {
        node: min(((embeddings[node] - embeddings[other]) ** 2).sum() for other in current)
        for node in near
    }
    return [node for node in near if apart[node] == max(apart.values())]


class Books:
    """Labels, guesses, skipped and pending examples, kept beside a session."""

    def __init__(self, proba, labels):
        self.proba = proba
        self.told = {i: int(y) for i, y in enumerate(labels) if y != UNLABELED}
        self.guessed, self.skipped, self.last = {}, set(), None

    def current(self):
        return self.told | self.guessed

    def free(self):
        return set(range(len(self.proba))) - self.told.keys() - self.guessed.keys() - self.skipped

    def asked(self, index):
        self.guessed[index] = int(self.proba[index].argmax())

    def next_class(self, turn, other):
        """The class in turn, among the rare ones that have a label; none if none has."""
        rare = [k for k in range(self.proba.shape[1]) if k != other]
        found = set(self.told.values())
        return next((k for k in rare[turn:] + rare[:turn] if k in found), None)


@pytest.mark.slow
@pytest.mark.usefixtures("bucket_sizes")
@settings(max_examples=400)
@given(pools(max_size=25), st.data())
def test_every_question_is_one_the_definition_allows(pool, data):
    proba, truth, labels = pool
    other = data.draw(st.integers(0, proba.shape[1] - 1))
    rng = np.random.default_rng(data.draw(st.integers(0)))
    embeddings = data.draw(st.sampled_from([None, rng.integers(-9, 9, size=(len(proba), 2)) * 1.0]))
    spread = data.draw(st.integers(1, 5))
    session = FairCuts(discover=0, sample=0, spread=spread).start(
        Snapshot(proba, labels, embeddings, other=other), rng=rng
    )
    books = Books(proba, labels)
    for _ in range(60):
        action = data.draw(st.sampled_from(["ask", "tell", "skip", "withdraw", "release", "again"]))
        if action == "ask" and books.free():
            target = books.next_class(session._turn, other)
            index = session.ask()
            assert index in books.free()
            if target is not None:
                current, free = books.current(), books.free()
                allowed = naive_questions(proba, target, current, free, embeddings, spread)
                assert index in allowed
            books.asked(index)
        elif action in ("tell", "skip", "release") and books.guessed:
            index = data.draw(st.sampled_from(sorted(books.guessed)))
            del books.guessed[index]
            if action == "tell":
                session.tell(index, truth[index])
                books.told[index] = int(truth[index])
            elif action == "skip":
                session.skip(index)
                books.skipped.add(index)
            else:
                session.release(index)
        elif action in ("withdraw", "again") and books.told:
            index = data.draw(st.sampled_from(sorted(books.told)))
            if action == "withdraw":
                session.state.withdraw(index)
                del books.told[index]
            else:
                books.told[index] = data.draw(st.integers(0, proba.shape[1] - 1))
                session.tell(index, books.told[index])


def test_the_classes_get_equally_many_questions():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(5), size=500)
    labels = np.full(500, UNLABELED)
    labels[:9] = [0, 1, 3, 4, 4, 4, 4, 4, 4]  # class 2 has no label
    session = ONLY_CUTS.start(Snapshot(proba, labels), rng=rng)
    turns = Counter()
    for _ in range(30):
        index = session.ask()
        turns[session._turn] += 1
        session.tell(index, 4)
    assert turns == {1: 10, 2: 10, 0: 10}  # the turn after classes 0, 1 and 3


def first_questions(strategy, labels, n_random, embeddings=None, count=1500):
    """What is asked first with each of many seeds, and whether at random."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=600)
    known = np.full(600, UNLABELED)
    known[: len(labels)] = labels
    known[100 : 100 + n_random] = 2
    snapshot = Snapshot(proba, known, embeddings)
    asked = []
    for seed in range(count):
        state = LabelState.from_snapshot(snapshot)
        for index in range(100, 100 + n_random):
            state.mark_random(index)
        rng = np.random.default_rng(seed)
        index = strategy.start(snapshot, rng=rng, budget=50, state=state).ask()
        asked.append((index, index in state.random))
    return snapshot, asked


@pytest.mark.slow
@pytest.mark.parametrize(
    ("labels", "n_random", "share"),
    [
        ([0, 1, 2], 0, 0.1),
        ([0, 2], 0, 1 / 2 * 100 / 101),
        ([0, 2], 99, 1 / 2 * 100 / 200),
        ([1, 0], 99, 0.1),
        ([2, 2], 99, 1),  # nothing is known to ask about, and there is no model yet
        ([2, 2], 0, 1),
    ],
    ids=["all found", "one is missing", "missing for long", "but the majority", "no rare", "new"],
)
def test_random_questions_have_their_share(labels, n_random, share):
    _, asked = first_questions(FairCuts(sample=0.1), labels, n_random)
    n_asked = sum(is_random for _, is_random in asked)
    assert abs(n_asked - len(asked) * share) <= 4 * np.sqrt(len(asked) * share * (1 - share))


@pytest.mark.slow
def test_the_search_is_random_or_for_outliers_or_for_the_least_sure():
    embeddings = np.random.default_rng(1).normal(size=(600, 3))
    snapshot, asked = first_questions(FairCuts(discover=1e9), [0, 2], 20, embeddings)
    free = snapshot.askable().tolist()
    least_sure = min(free, key=lambda i: (snapshot.proba[i].max(), i))
    outlier = Outliers().rank(snapshot, 1, np.random.default_rng(0))[0]
    chosen = Counter(index for index, is_random in asked if not is_random)
    assert set(chosen) == {least_sure, outlier}
    # Nothing rare among 20 random labels, and no outlier has a label: outliers likely pay.
    assert chosen[least_sure] > 300
    assert chosen[outlier] > 300


def test_a_class_that_does_not_exist_is_looked_for_less_and_less():
    embeddings, truth = blobs(4000, 0.02, 1, 0)
    learner = Learner(embeddings, 3, strategy="fair-cuts", batch_size=50, seed=0)  # class 1: none
    n_random = []
    for _ in range(24):
        for _ in range(50):
            index = learner.ask()
            learner.tell(index, 2 * int(truth[index]))
        n_random.append(len(learner.state.random))
        learner.refit()
    assert n_random[-1] < 330  # of 1,200; at a fixed share of two thirds it would be 400
    assert n_random[-1] - n_random[-5] < 50  # of the last 200


def test_what_is_given_back_does_not_come_again_at_random():
    """Only what was sampled at random may count as random, or the sample would not be fair."""
    proba = np.linspace([0.99, 0.01], [0.01, 0.99], num=1000)
    labels = np.full(1000, UNLABELED)
    labels[[0, 999]] = 0, 1
    session = FairCuts(sample=0.5).start(
        Snapshot(proba, labels), rng=np.random.default_rng(0), budget=1000
    )
    at_cut = set()
    for _ in range(200):
        index = session.ask()
        if index not in session.state.random:
            at_cut.add(index)
        session.release(index)
    assert len(at_cut) == 1
    assert not at_cut & session.state.random


@pytest.mark.slow
def test_what_is_asked_at_random_is_uniform_over_what_is_not_labelled():
    counts = Counter()
    proba = np.linspace([0.99, 0.01], [0.01, 0.99], num=20)
    labels = np.where(np.isin(np.arange(20), [0, 19]), np.arange(20) // 19, UNLABELED)
    for seed in range(3600):
        session = FairCuts(sample=1).start(
            Snapshot(proba, labels), rng=np.random.default_rng(seed), budget=5
        )
        counts[session.ask()] += 1
    assert set(counts) == set(range(1, 19))
    chi_squared = sum((count - 200) ** 2 / 200 for count in counts.values())
    assert chi_squared < 46  # 17 degrees of freedom: 1 in 5,000


def test_one_wrong_label_does_not_move_the_cut():
    # Class 0 is 0 to 49; wrong labels say that 80 is of class 0 and 20 of class 1.
    proba = np.linspace([0.99, 0.01], [0.01, 0.99], num=100)
    labels = np.full(100, UNLABELED)
    labels[[10, 20, 30, 40, 60, 70, 80, 90]] = [0, 1, 0, 0, 1, 1, 0, 1]
    session = ONLY_CUTS.start(Snapshot(proba, labels), rng=np.random.default_rng(0))
    asked = []
    for _ in range(15):
        asked.append(session.ask())
        session.tell(asked[-1], int(asked[-1] >= 50))
    assert all(40 < index < 60 for index in asked)
    galaxy = Galaxy().start(Snapshot(proba, labels), rng=np.random.default_rng(0))
    elsewhere = [galaxy.ask()]
    for _ in range(15):
        galaxy.tell(elsewhere[-1], int(elsewhere[-1] >= 50))
        elsewhere.append(galaxy.ask())
    assert any(not 40 < index < 60 for index in elsewhere)


def test_with_wrong_labels_it_finds_more_than_galaxy():
    found = {
        type(strategy): np.mean([rare_found(strategy, 0.1, seed) for seed in range(20)])
        for strategy in (FairCuts(), Galaxy())
    }
    assert found[FairCuts] > found[Galaxy]


def test_options_are_checked():
    with pytest.raises(ValueError, match="discover must be a number of at least 0, got -1"):
        FairCuts(discover=-1)
    with pytest.raises(ValueError, match=r"sample must be a share between 0 and 1, got -0\.1"):
        FairCuts(sample=-0.1)


def blobs(size, prevalence, n_rare, seed):
    """Rare classes far from each other, in a majority class that is everywhere."""
    rng = np.random.default_rng(seed)
    each = int(size * prevalence)
    truth = np.repeat(np.arange(n_rare + 1), [each] * n_rare + [size - n_rare * each])
    centers = np.vstack([3 * np.eye(n_rare, 8), np.zeros(8)])
    return rng.normal(size=(size, 8)) + centers[truth], truth


@pytest.mark.slow
def test_at_one_percent_every_class_is_found_within_1000_labels():
    """Half of the questions at random would miss a class in 2 of 100 runs."""
    n_missed = 0
    for seed in range(100):
        embeddings, truth = blobs(4000, 0.01, 3, seed)
        labels = discovered(embeddings, truth, seed)
        n_missed += len(set(truth[list(labels)])) < 4
    assert n_missed <= 1


def discovered(embeddings, truth, seed):
    learner = Learner(embeddings, 4, strategy="fair-cuts", seed=seed, batch_size=100)
    while len(learner.state.labels) < 1000 and len(set(truth[list(learner.state.labels)])) < 4:
        for _ in range(100):
            index = learner.ask()
            learner.tell(index, int(truth[index]))
        learner.refit()
    return learner.state.labels


def test_a_learner_knows_what_was_random_over_a_refit_and_a_resume():
    embeddings, truth = blobs(800, 0.05, 2, 0)
    learner = Learner(embeddings, 3, strategy="fair-cuts", batch_size=50, explore="random")
    first = [learner.ask() for _ in range(50)]
    for index in first:
        learner.tell(index, int(truth[index]))
    assert learner.state.random == set(first)
    learner.refit()
    for _ in range(200):
        index = learner.ask()
        learner.tell(index, int(truth[index]))
    assert set(first) < learner.state.random < set(learner.state.labels)
    assert len(learner.state.random) < 100
    other = Learner(embeddings, 3, strategy="fair-cuts", batch_size=50)
    other.resume(learner.state.labels, random=learner.state.random)
    assert other.state.random == learner.state.random


@pytest.mark.slow
def test_it_finds_far_more_of_the_rare_than_random():
    embeddings, truth = blobs(4000, 0.01, 3, 0)
    found = {
        name: simulate(embeddings, truth, name, batch_size=50, rounds=10)[-1].rare_found
        for name in ("fair-cuts", "random")
    }
    assert found["fair-cuts"] > 3 * found["random"]


@given(pools(max_size=25), st.integers(0))
def test_the_rankings_in_the_picture_are_those_of_the_definition(pool, seed):
    proba, _, labels = pool
    session = ONLY_CUTS.start(Snapshot(proba, labels), rng=np.random.default_rng(seed))
    told = {i: y for i, y in enumerate(labels.tolist()) if y != UNLABELED}
    views = session.rankings()
    rare = set(told.values()) - {proba.shape[1] - 1}
    assert {view.target for view in views} == rare
    for view in views:
        order = ranking(proba, view.target)
        expected = [(rank, told[i] == view.target) for rank, i in enumerate(order) if i in told]
        assert view.labels == expected
        n_wrong = sum(is_target for rank, is_target in expected if rank <= view.low)
        n_wrong += sum(not is_target for rank, is_target in expected if rank >= view.high)
        cuts = [-1, *(rank for rank, _ in expected)]
        least = min(sum(is_target == (rank <= cut) for rank, is_target in expected) for cut in cuts)
        assert n_wrong == least
        assert not any(view.low < rank < view.high for rank, _ in expected)
