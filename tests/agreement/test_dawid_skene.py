"""Dawid and Skene's model: against crowd-kit, against the truth, and where it could break."""

import numpy as np
import pandas as pd
import pytest
from crowdkit.aggregation import DawidSkene as CrowdKit
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from galaxy_al.agreement.dawid_skene import dawid_skene
from galaxy_al.agreement.votes import Votes
from support.simulated_people import reliable, simulate

PEOPLE = [reliable(right, 3) for right in (0.95, 0.8, 0.6)]
PRIORS = (0.1, 0.2, 0.7)


@pytest.mark.filterwarnings("ignore:The (inplace|copy) keyword:Warning")  # crowd-kit's
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("steps", [1, 5, 60])
def test_without_what_is_believed_it_is_crowd_kits(seed, steps):
    votes, _ = simulate(np.random.default_rng(seed), PRIORS, PEOPLE, 150, share=0.7)
    columns = {"task": votes.examples, "worker": votes.people, "label": votes.labels}
    other = CrowdKit(n_iter=steps, tol=-1.0).fit(pd.DataFrame(columns))
    found = dawid_skene(votes, believed_labels=0, max_steps=steps, tolerance=-1)
    expected = other.probas_.sort_index()[list(range(3))].to_numpy()
    assert found.proba == pytest.approx(expected, abs=1e-6)
    errors = np.array(
        [[[other.errors_[k].get((who, name), 0) for name in range(3)] for k in range(3)]
         for who in range(3)]
    )  # fmt: skip
    assert found.confusion == pytest.approx(errors, abs=1e-6)


def test_it_learns_who_is_reliable_and_beats_the_majority():
    rng, gained = np.random.default_rng(0), []
    people = [reliable(right, 3) for right in (0.95, 0.55, 0.55)]
    for _ in range(10):
        votes, truth = simulate(rng, PRIORS, people, 600)
        found = dawid_skene(votes)
        right = (found.confusion.diagonal(axis1=1, axis2=2) * found.class_priors).sum(axis=1)
        assert right.argmax() == 0
        majority = votes.counts().argmax(axis=1)
        gained.append((found.proba.argmax(axis=1) == truth).mean() - (majority == truth).mean())
    assert np.mean(gained) > 0.02


@pytest.mark.parametrize("n_examples", [20, 60, 300])
def test_its_probabilities_are_not_overconfident(n_examples):
    rng, claimed, was_right = np.random.default_rng(1), [], []
    for _ in range(40):
        votes, truth = simulate(rng, PRIORS, [reliable(0.9, 3), reliable(0.75, 3)], n_examples)
        proba = dawid_skene(votes).proba
        claimed.extend(proba.max(axis=1))
        was_right.extend(proba.argmax(axis=1) == truth)
    assert np.mean(was_right) > np.mean(claimed) - 0.05


def test_a_person_who_always_answers_the_same_breaks_nothing():
    always = np.zeros((3, 3))
    always[:, 2] = 1
    rng = np.random.default_rng(2)
    votes, truth = simulate(rng, PRIORS, [reliable(0.9, 3), reliable(0.9, 3), always], 300)
    found = dawid_skene(votes)
    assert np.isfinite(found.proba).all()
    assert (found.proba.argmax(axis=1) == truth).mean() > 0.85
    assert (found.confusion[2].argmax(axis=1) == 2).all()


@settings(deadline=None)
@given(
    arrays(np.intp, st.tuples(st.integers(1, 30), st.just(3)), elements=st.integers(0, 3)),
    st.floats(0, 10),
)
def test_it_gives_probabilities_whatever_the_votes(rows, believed):
    numbers = np.unique(rows[:, 0], return_inverse=True)[1]
    votes = Votes(numbers, rows[:, 1], rows[:, 2], int(numbers.max()) + 1, 4, 4)
    found = dawid_skene(votes, believed_labels=believed)
    assert found.proba.sum(axis=1) == pytest.approx(1)
    assert found.confusion.sum(axis=2) == pytest.approx(1)
    assert found.class_priors.sum() == pytest.approx(1)


def test_few_labels_are_not_certain():
    votes = Votes.of([{"ann": "dent", "bob": "fine"}] * 2, ["ann", "bob"], ["dent", "fine"])
    assert dawid_skene(votes).proba == pytest.approx(0.5)
