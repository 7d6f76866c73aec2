"""The paper's bounds hold, measured on the definition and on GALAXY itself."""

from functools import cache
from math import log2

import numpy as np
import pytest

from galaxy_al.experiments.theory import bisect, check, confidence_batch, galaxy_batch, region_size


@cache
def expected_queries(size, n_id):
    """E[m_ID], E[m_OOD] of the paper's bisection, exactly: over both choices of the middle."""
    if size == 0:
        return 0.0, 0.0
    total = np.zeros(2)
    for i in (size // 2 + 1, -(-size // 2)):
        if i <= n_id:
            total += (1, 0)
            total += expected_queries(size - i, n_id - i)
        else:
            total += (0, 1)
            total += expected_queries(i - 1, n_id)
    return tuple(total / 2)


@pytest.mark.parametrize(("size", "n_id"), [(1, 1), (5, 2), (8, 3), (31, 7), (100, 64)])
def test_bisection_asks_what_the_definition_says(size, n_id):
    rng = np.random.default_rng(0)
    batches = [bisect(size, n_id, rng) for _ in range(4000)]
    assert all(batch.found_cut for batch in batches)
    means = np.mean([[b.n_id, b.n_ood] for b in batches], axis=0)
    np.testing.assert_allclose(means, expected_queries(size, n_id), atol=0.06)


@pytest.mark.parametrize("z", [1, 3, 5])
@pytest.mark.parametrize("n_left", [3, 4, 5, 12, 31, 100])
def test_the_theorem_on_bisection_holds_exactly(z, n_left):
    size = region_size(z, n_left)
    assert size >= 2 ** (z + 2) - 1
    found = np.mean([expected_queries(size, n_id) for n_id in range(1, n_left)], axis=0)
    half = log2(n_left) / 2
    assert found[0] / found[1] >= half / (z + half) - 1e-12


@pytest.mark.parametrize("statement", ["bisection", "batched", "uncertainty", "noise"])
@pytest.mark.parametrize("z", [1, 4])
@pytest.mark.parametrize("n_left", [7, 60])
def test_the_bounds_of_the_paper_hold(statement, z, n_left):
    extra = 0 if statement in ("bisection", "uncertainty") else 6
    delta = 0.1 if statement == "noise" else 0.0
    found = check(statement, z=z, n_left=n_left, extra=extra, delta=delta, draws=150)
    assert found.holds, found


def test_a_bound_that_does_not_hold_is_seen():
    from dataclasses import replace

    found = check("batched", z=2, n_left=31, extra=4, draws=150)
    assert not replace(found, bound=2 * found.ratio).holds
    noisy = check("noise", z=2, n_left=31, extra=4, delta=0.1, draws=150)
    assert not replace(noisy, found=0.5).holds


def test_galaxy_on_a_separable_line_bisects_and_then_asks_on_both_sides():
    rng = np.random.default_rng(0)
    size, n_id = 127, 20
    after_bisection = galaxy_batch(size, n_id, 7, rng)
    assert after_bisection.found_cut
    more = galaxy_batch(size, n_id, 7 + 12, rng)
    asked_of_id, asked_of_ood = more.n_id - after_bisection.n_id, more.n_ood - after_bisection.n_ood
    assert abs(asked_of_id - asked_of_ood) <= 4


def test_uncertainty_sampling_gets_what_lies_at_its_threshold():
    assert confidence_batch(99, n_id=30, budget=20, threshold=0.99).n_id == 0
    around = confidence_batch(99, n_id=30, budget=20, threshold=0.3)
    assert 5 <= around.n_id <= 7  # the scores rise more steeply below: 3 of 10 lie there


def test_without_noise_the_cut_is_always_found_and_with_much_of_it_often_not():
    rng = np.random.default_rng(0)
    clean = [galaxy_batch(255, int(n), 12, rng).found_cut for n in rng.integers(1, 255, 50)]
    noisy = [galaxy_batch(255, int(n), 12, rng, 0.3).found_cut for n in rng.integers(1, 255, 50)]
    assert all(clean)
    assert np.mean(noisy) < 0.5
