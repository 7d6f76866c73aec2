"""Discovery: its share by integration, its guarantee by simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from galaxy_al import Learner, Snapshot
from galaxy_al.strategies import Discovery, Outliers
from galaxy_al.strategies.discovery import search_share
from galaxy_al.strategies.label_state import LabelState


@given(st.integers(0, 40), st.integers(1, 4), st.integers(0, 60))
def test_the_share_is_the_chance_that_a_missing_class_shows_up(n_random, n_missing, n_ahead):
    """With every share of the pool as likely for each class before the random sample."""
    none = quad(lambda p: (1 - p) ** (n_random + n_ahead), 0, 1)[0]
    none /= quad(lambda p: (1 - p) ** n_random, 0, 1)[0]
    assert search_share(n_random, n_missing, n_ahead) == pytest.approx(1 - none**n_missing)


def pool_of(embeddings):
    return Snapshot(np.full((len(embeddings), 2), 0.5), embeddings=embeddings)


def n_until_rare(embeddings, truth, seed):
    session = Discovery().start(pool_of(embeddings), rng=np.random.default_rng(seed), budget=20)
    for n_asked in range(1, len(truth) + 1):
        index = session.ask()
        if truth[index] == 0:
            return n_asked
        session.tell(index, 1)
    raise AssertionError("there is a rare example")


@pytest.mark.slow
def test_a_class_that_lies_apart_is_found_in_a_tenth_of_the_labels_of_chance():
    embeddings = np.random.default_rng(0).normal(size=(1000, 4))
    truth = np.ones(1000, dtype=int)
    truth[::200] = 0  # 5 of 1,000: chance needs 167
    embeddings[truth == 0] += 9
    assert np.mean([n_until_rare(embeddings, truth, seed) for seed in range(40)]) < 17


@pytest.mark.slow
def test_a_class_in_the_middle_of_the_others_takes_at_most_twice_the_labels_of_chance():
    embeddings = np.random.default_rng(0).normal(size=(400, 4))
    inner = np.argsort(np.linalg.norm(embeddings, axis=1))[:7]  # no outlier is rare
    truth = np.ones(400, dtype=int)
    truth[inner] = 0
    counts = np.array([n_until_rare(embeddings, truth, seed) for seed in range(300)])
    by_chance = 401 / 8  # the mean of the first of 7 in a random order of 400
    error = counts.std(ddof=1) / len(counts) ** 0.5
    assert counts.mean() < 2 * by_chance + 3 * error
    assert counts.mean() > 1.5 * by_chance  # or this pool tests nothing


def test_what_counts_as_random_is_uniform():
    embeddings = np.random.default_rng(0).normal(size=(20, 2))
    counts = np.zeros(20)
    for seed in range(3000):
        session = Discovery().start(pool_of(embeddings), rng=np.random.default_rng(seed))
        index = session.ask()
        counts[index] += index in session.state.random
    expected = counts.sum() / 20
    assert abs(counts.sum() - 1500) < 4 * np.sqrt(750)
    assert ((counts - expected) ** 2 / expected).sum() < 50  # 19 degrees of freedom: 1 in 10,000


def judged(n_outliers, n_rare_outliers, n_random, n_rare_random):
    """How often outliers pay after so many answers."""
    embeddings = np.random.default_rng(0).normal(size=(300, 2))
    order = Outliers().rank(pool_of(embeddings), 300, np.random.default_rng(0)).tolist()
    outliers, sampled = order[:n_outliers], order[-n_random:]
    labels = dict.fromkeys([*outliers, *sampled], 1)
    labels |= dict.fromkeys([*outliers[:n_rare_outliers], *sampled[:n_rare_random]], 0)
    state = LabelState(300, 2, labels, random=sampled)
    strategy = Outliers()
    rngs = map(np.random.default_rng, range(400))
    return np.mean([strategy.pay(state, pool_of(embeddings), rng) for rng in rngs])


def test_outliers_are_asked_as_long_as_they_pay():
    assert judged(50, 0, 50, 10) < 0.02
    assert judged(50, 10, 50, 0) > 0.98
    assert 0.3 < judged(20, 1, 20, 1) < 0.7
    assert judged(20, 0, 20, 0) == 1  # nothing rare is known yet


def test_a_learner_explores_by_discovery_where_the_strategy_says_so():
    embeddings = np.random.default_rng(0).normal(size=(50, 2))
    assert isinstance(Learner(embeddings, 2).explore, Discovery)
    assert Learner(embeddings, 2, strategy="galaxy").explore.name == "random"
    assert Learner(embeddings, 2, explore="typiclust").explore.name == "typiclust"
