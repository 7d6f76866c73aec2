"""The paper's claims, on results that are made up to confirm or refute them."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

from galaxy_al.experiments.claims import claims_of, difference
from galaxy_al.experiments.curves import Curve

LABELS = np.arange(100, 1600, 100)


def curves(levels, spread=0.002, n_starts=3, seed=0, rise=0.2):
    """Curves that end at a level, with a little noise per start."""
    rng = np.random.default_rng(seed)
    shape = np.linspace(-rise, 0, len(LABELS))
    return {
        label: Curve(
            LABELS, level + shape + spread * rng.normal(size=(n_starts, 1)) * np.ones(len(LABELS))
        )
        for label, level in levels.items()
    }


def verdicts(accuracy, found, **kwargs):
    made = {"balanced_accuracy": accuracy, "rare_found": found}
    return {claim.statement: claim.verdict for claim in claims_of(made, **kwargs)}


PAPER = {"galaxy": 0.9, "base": 0.85, "random": 0.7, "most-likely-positive": 0.6, "badge": 0.75}
FOUND = {"galaxy": 300, "base": 150, "random": 50, "most-likely-positive": 500, "badge": 60}


def test_results_like_the_papers_confirm_it():
    made = verdicts(curves(PAPER), curves(FOUND, spread=3))
    assert set(made.values()) == {"confirmed"}
    assert len(made) == 6


def test_results_the_other_way_round_refute_it():
    accuracy = curves(PAPER | {"galaxy": 0.65})
    found = curves(FOUND | {"galaxy": 20, "most-likely-positive": 10}, spread=1)
    made = verdicts(accuracy, found)
    assert made["GALAXY is the most accurate (Figure 4)"] == "not confirmed"
    assert made["GALAXY saves labels, up to 30% (Figure 4)"] == "not confirmed"
    at_search = "most-likely-positive finds more rare examples than GALAXY (Figure 5)"
    assert made[at_search] == "not confirmed"
    assert made["base is more accurate than badge"] == "confirmed"


@pytest.mark.parametrize("n_starts", [1, 3])
def test_what_is_within_the_error_is_not_decidable(n_starts):
    close = dict.fromkeys(PAPER, 0.8)
    made = verdicts(curves(close, 0.05, n_starts), curves(dict.fromkeys(FOUND, 100), 30, n_starts))
    assert made["GALAXY is the most accurate (Figure 4)"] == "not decidable"
    assert "confirmed" not in made.values()


def test_a_difference_is_beyond_the_error_as_the_t_test_says():
    rng = np.random.default_rng(0)
    signs = []
    for _ in range(300):
        ours, theirs = rng.normal(0.5, 1, size=(2, 4)) + rng.normal(size=4)
        theirs -= rng.choice([0, 1.5])
        signs.append(difference("x", ours, theirs).sign)
        assert (signs[-1] == 1) == (ttest_rel(ours, theirs, alternative="greater").pvalue < 0.05)
        assert (signs[-1] == -1) == (ttest_rel(ours, theirs, alternative="less").pvalue < 0.05)
    assert {-1, 0, 1} == set(signs)


def test_labels_saved_are_those_read_off_by_hand():
    ours = Curve(LABELS, np.array([LABELS / 1000] * 3))  # straight lines are not smoothed
    theirs = Curve(LABELS, np.array([LABELS / 2000] * 3) + np.array([[0.0], [0.01], [-0.01]]))
    made = {"balanced_accuracy": {"galaxy": ours, "random": theirs}}
    made["rare_found"] = made["balanced_accuracy"]
    (claim,) = [c for c in claims_of(made) if "saves" in c.statement]
    # random ends at 0.75, 0.76, 0.74 after 1,500 labels; GALAXY has that after 800.
    saved = 1 - np.array([800, 800, 800]) / 1500
    assert claim.found.startswith(f"+{saved.mean():.0%} ± 0%")
    assert claim.verdict == "confirmed"


def test_without_galaxy_there_is_nothing_to_claim():
    made = curves({"random": 0.5})
    assert claims_of({"balanced_accuracy": made, "rare_found": made}) == []
