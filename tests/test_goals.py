"""Goals: which strategy asks, and when a model is trained, counted label by label."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from galaxy_al import Learner, simulate
from galaxy_al.errors import InvalidArgument
from galaxy_al.goals import GOALS
from support.projects import blobs


@pytest.fixture(scope="module")
def pool():
    embeddings, names = blobs()
    return embeddings, np.array([["scratch", "dent", "fine"].index(name) for name in names])


@given(n_labels=st.integers(0, 10**6), batch_size=st.integers(1, 1000))
def test_a_batch_is_from_one_to_the_batch_size_and_never_shrinks(n_labels, batch_size):
    goal = GOALS["find-all"]
    batch = goal.next_batch(n_labels, batch_size)
    assert 1 <= batch <= batch_size
    assert batch <= goal.next_batch(n_labels + 1, batch_size)
    assert GOALS["classifier"].next_batch(n_labels, batch_size) == batch_size


def test_the_first_trainings_follow_every_label():
    assert {GOALS["find-all"].next_batch(n, 50) for n in range(2, 40)} == {1}
    assert GOALS["find-all"].next_batch(100_000, 50) == 50


def test_an_unknown_goal_is_refused(pool):
    with pytest.raises(
        InvalidArgument, match=r"Unknown goal 'all'\. Choose from: classifier, find-all\."
    ):
        Learner(pool[0], 3, goal="all")


def test_the_goal_chooses_the_strategy_unless_one_is_given(pool):
    assert Learner(pool[0], 3).strategy.name == "fair-cuts"
    assert Learner(pool[0], 3, goal="find-all").strategy.name == "find-all"
    assert Learner(pool[0], 3, goal="find-all", strategy="galaxy").strategy.name == "galaxy"


def test_a_simulation_trains_when_the_goal_wants_it(pool):
    embeddings, truth = pool
    history = simulate(embeddings, truth, goal="find-all", batch_size=4, rounds=200)
    trained_on = 0
    for step in history:
        known = truth[[i for other in history for i in other.indices][:trained_on]]
        if len(set(known)) < 2:  # it explores until a second class is known
            fresh = truth[list(step.indices)]
            assert len(set(fresh[:-1])) <= 1
            assert len(fresh) == 4 or len({*known, *fresh}) > 1
        elif step is not history[-1]:
            assert len(step.indices) == GOALS["find-all"].next_batch(trained_on, 4)
        trained_on = step.n_labels
    assert trained_on == len(truth)


def test_a_simulation_for_a_classifier_trains_after_every_batch(pool):
    history = simulate(*pool, batch_size=20, rounds=3)
    assert [len(step.indices) for step in history] == [20, 20, 20]


def test_find_all_finds_the_rare_ones_sooner_than_a_classifier_does(pool):
    embeddings, truth = pool
    n_rare = int((truth < 2).sum())
    needed = {}
    for goal in GOALS:
        history = simulate(embeddings, truth, goal=goal, batch_size=10, rounds=200, seed=1)
        needed[goal] = next(step.n_labels for step in history if step.rare_found >= 0.95 * n_rare)
    assert needed["find-all"] < needed["classifier"]
