"""Agreement: alpha against the package of its author's method, intervals by coverage."""

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from galaxy_al.agreement.alpha import agreement
from galaxy_al.agreement.votes import Votes
from support.simulated_people import reliable, simulate

NAMES = ("dent", "scratch", "fine")
tables = st.lists(
    st.dictionaries(st.sampled_from(["ann", "bob", "eve"]), st.sampled_from(NAMES), min_size=1),
    min_size=2,
    max_size=25,
)


def votes_of(labels):
    return Votes.of(labels, ["ann", "bob", "eve"], NAMES)


@settings(deadline=None)
@given(tables)
def test_alpha_is_that_of_the_krippendorff_package(labels):
    shared = [given for given in labels if len(given) > 1]
    assume(len({name for given in shared for name in given.values()}) > 1)
    table = [
        [NAMES.index(given[who]) if who in given else np.nan for given in labels]
        for who in ("ann", "bob", "eve")
    ]
    expected = krippendorff.alpha(reliability_data=table, level_of_measurement="nominal")
    assert agreement(votes_of(labels)).alpha.value == pytest.approx(expected)


@settings(deadline=None)
@given(tables)
def test_the_agreement_on_a_class_is_how_often_another_person_gives_it(labels):
    found = agreement(votes_of(labels)).per_class
    for name, estimate in zip(NAMES, found):
        chances = [  # that another person of the same example gives it, for each who gave it
            np.mean([other == name for who, other in given.items() if who != one])
            for given in labels
            if len(given) > 1
            for one, label in given.items()
            if label == name
        ]
        assert (estimate is None) == (not chances)
        if chances:
            assert estimate.value == pytest.approx(np.mean(chances))
            assert estimate.low <= estimate.value <= estimate.high


def test_nothing_shared_and_one_class_alone_have_no_alpha():
    assert agreement(votes_of([{"ann": "dent"}, {"bob": "fine"}])).alpha is None
    assert agreement(votes_of([{"ann": "fine", "bob": "fine"}] * 9)).alpha is None


def test_a_few_examples_without_a_disagreement_promise_nothing():
    few = agreement(votes_of([{"ann": name, "bob": name} for name in NAMES]))
    many = agreement(votes_of([{"ann": name, "bob": name} for name in NAMES * 50]))
    assert few.alpha.value == many.alpha.value == few.alpha.high == 1
    assert few.alpha.low < 0.6
    assert 0.95 < many.alpha.low < 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_examples", "rare", "least"),
    [(30, 0.1, 0.86), (30, 0.3, 0.92), (100, 0.1, 0.91), (100, 0.3, 0.92), (400, 0.1, 0.92)],
)
def test_the_intervals_contain_the_truth_about_as_often_as_they_say(n_examples, rare, least):
    rng, priors = np.random.default_rng(0), (rare, 1 - rare)
    people = [reliable(0.95, 2), reliable(0.85, 2)]
    votes, _ = simulate(rng, priors, people, 200_000)
    truth = agreement_without_intervals(votes)
    inside = []
    for _ in range(200):
        votes, _ = simulate(rng, priors, people, n_examples)
        found = agreement(votes)
        estimates = [found.alpha, *found.per_class]
        inside.append([e is not None and e.low <= t <= e.high for e, t in zip(estimates, truth)])
    assert np.mean(inside, axis=0).min() > least


def agreement_without_intervals(votes):
    """Alpha and the agreement on each class of two people, by their definitions."""
    one, other = votes.labels[votes.people == 0], votes.labels[votes.people == 1]
    shares = np.bincount(votes.labels) / len(votes.labels)
    alpha = 1 - (one != other).mean() / (1 - (shares**2).sum())
    return [alpha, *(2 * ((one == k) & (other == k)).sum() / ((votes.labels == k).sum())
                     for k in range(2))]  # fmt: skip
