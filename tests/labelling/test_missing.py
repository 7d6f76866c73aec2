"""What is said about classes without labels: its bound by coverage in simulation."""

import numpy as np
import pytest
from scipy.stats import binomtest

from galaxy_al.labelling.log import Entry
from galaxy_al.labelling.missing import largest_share, missing_classes
from galaxy_al.strategies import FairCuts, FindAll, Galaxy


def labels(name, count, is_random=True):
    return [
        Entry("ann", "label", f"{name}{is_random}{i}", name, is_random=is_random)
        for i in range(count)
    ]


@pytest.mark.parametrize("n_random", [1, 30, 200, 5000])
def test_the_bound_is_that_of_clopper_and_pearson(n_random):
    interval = binomtest(0, n_random, alternative="less").proportion_ci(0.95)
    assert largest_share(n_random) == pytest.approx(interval.high)


@pytest.mark.parametrize("share", [0.002, 0.01, 0.05])
def test_a_class_that_is_more_frequent_than_the_bound_was_missed_in_5_of_100_pools(share):
    n_random = int(np.ceil(np.log(0.05) / np.log(1 - share)))  # the bound is just below the share
    assert largest_share(n_random) <= share
    sampled = np.random.default_rng(0).random((4000, n_random)) < share
    n_wrong = np.count_nonzero(~sampled.any(axis=1))
    assert n_wrong <= 200 + 4 * np.sqrt(190)


def test_only_random_labels_count():
    entries = [*labels("fine", 60), *labels("fine", 400, is_random=False)]
    assert missing_classes(["dent", "fine"], entries, FairCuts(), 25)["dent"].startswith(
        "None in 60 random"
    )


def test_nothing_is_said_early_or_when_all_classes_are_found():
    assert missing_classes(["dent", "fine"], labels("fine", 29), FairCuts(), 25) == {}
    entries = [*labels("fine", 100), *labels("dent", 1, is_random=False)]
    assert missing_classes(["dent", "fine"], entries, FairCuts(), 25) == {}
    assert (
        missing_classes(["dent", "fine"], labels("dent", 100), FairCuts(), 25) == {}
    )  # majority: not looked for


def test_the_search_fades():
    said = [
        missing_classes(["dent", "fine"], labels("fine", n), FairCuts(), 25)["dent"]
        for n in (30, 500, 5000)
    ]
    assert [text.rpartition(". ")[2] for text in said] == [
        "1 question in 2 looks for it.",
        "1 question in 11 looks for it.",
        "1 question in 101 looks for it.",
    ]


def test_several_missing_classes_are_searched_together():
    said = missing_classes(["dent", "rust", "fine"], labels("fine", 40), FindAll(400), 50)
    assert set(said) == {"dent", "rust"}
    assert "Almost every question looks for the 2 missing classes." in said["rust"]


def test_a_strategy_that_does_not_search_says_nothing_of_it():
    for strategy in (Galaxy(), FairCuts(discover=0)):
        said = missing_classes(["dent", "fine"], labels("fine", 100), strategy, 50)
        assert said == {
            "dent": "None in 100 random labels: at most 3.0% of the pool (95% sure).",
        }
