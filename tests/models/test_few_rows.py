"""Few rows that stand for many give the same sums, thresholds and estimates as all of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from galaxy_al.free_examples import FreeExamples
from galaxy_al.models import few_rows as module
from galaxy_al.models.auto import HeldOut
from galaxy_al.models.decisions import ThresholdCurve, choose_from_curves, choose_thresholds
from galaxy_al.models.estimates import estimate_decisions
from galaxy_al.models.few_rows import few_rows
from galaxy_al.shards import sharded
from support.shardings import cuts


def scores(size, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(-5, 3, (size, n_classes))
    logits[:, -1] = 0
    table = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (table / table.sum(axis=1, keepdims=True)).astype(np.float32)


@given(st.integers(2, 4), st.integers(0, 99), st.integers(1, 40), st.data())
def test_counts_and_sums_are_exact(n_classes, seed, n_exact, data):
    table = scores(300, n_classes, seed)
    busy = data.draw(st.sets(st.integers(0, 299), max_size=30))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_EXACT", n_exact)
        found = few_rows(sharded(table, data.draw(cuts(300))), FreeExamples(300, busy))
    left = np.delete(table, sorted(busy), axis=0).astype(np.float64)
    assert found.counts.sum() == len(left)
    np.testing.assert_allclose((found.rows * found.counts[:, None]).sum(axis=0), left.sum(axis=0))
    for k, (values, counts) in enumerate(found.columns):
        assert counts.sum() == len(left)
        np.testing.assert_allclose((values * counts).sum(), left[:, k].sum())


def test_rows_that_tie_are_not_all_brought_here(monkeypatch):
    monkeypatch.setattr(module, "_EXACT", 100)
    table = scores(5000, 2)
    table[50:] = [0.001, 0.999]
    found = few_rows(sharded(table, [0, 2000, 5000]), FreeExamples(5000, ()))
    assert len(found.rows) < 200
    assert found.counts.sum() == 5000


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.5, 0.9]), st.integers(1, 5)), min_size=1))
def test_a_curve_of_counted_rows_is_that_of_repeated_rows(pairs):
    heights, counts = (np.array(column) for column in zip(*pairs))
    one = ThresholdCurve.of(heights, counts)
    other = ThresholdCurve.of(np.repeat(heights, counts))
    for name in ("thresholds", "precision", "recall"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name))


def expected_measures(table, decision):
    """Precision and recall of each class, if the probabilities are right."""
    decided = decision.classes(table)
    sums = [table[decided == k, k].sum(dtype=np.float64) for k in range(table.shape[1])]
    counts = np.maximum(np.bincount(decided, minlength=table.shape[1]), 1)
    return np.stack([sums / counts, sums / table.sum(axis=0, dtype=np.float64)])


@pytest.mark.parametrize("rule", ["f1", "precision=0.8", "recall=0.9", "balanced", "cost=5:1"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_decisions_and_estimates_are_nearly_those_of_all_rows(rule, n_classes, monkeypatch):
    monkeypatch.setattr(module, "_EXACT", 2000)  # far fewer than are decided to be rare
    table, rng = scores(200_000, n_classes), np.random.default_rng(1)
    priors = table.mean(axis=0, dtype=np.float64)
    few = few_rows(sharded(table, [0, 70_000, 200_000]), FreeExamples(200_000, ()))
    assert len(few.rows) < 30_000
    one = choose_thresholds(rule, table, priors)
    curves = [ThresholdCurve.of(*column) for column in few.columns]
    other = choose_from_curves(rule, curves, priors)
    np.testing.assert_allclose(
        expected_measures(table, one), expected_measures(table, other), atol=0.01
    )
    known = np.sort(rng.permutation(len(few.counts))[:200])
    known = known[few.counts[known] == 1]
    labels = rng.integers(0, n_classes, len(known))
    estimates = []
    for rows, counts in ((few.rows, few.counts), (np.repeat(few.rows, few.counts, axis=0), None)):
        places = known if counts is not None else (few.counts.cumsum() - 1)[known]
        held_out = HeldOut(places, labels, rows[places])
        estimates.append(estimate_decisions(rows, held_out, other, counts))
    np.testing.assert_allclose(estimates[0].confusion, estimates[1].confusion, rtol=1e-6)
    for mine, others in zip(estimates[0].classes, estimates[1].classes):
        assert str(mine.precision) == str(others.precision)
        assert str(mine.count) == str(others.count)
