import numpy as np
import pytest

from galaxy_al.experiments.curves import Curve, curves_of, moving_average


def test_a_moving_average_is_the_mean_around_each_round():
    runs = np.random.default_rng(0).random((3, 24))
    found = moving_average(runs, 10)
    for i in range(24):
        half = min(5, i, 23 - i)
        around = runs[:, i - half : i + half + 1]
        weights = np.ones(2 * half + 1)
        if half:
            weights[[0, -1]] = 0.5
        np.testing.assert_allclose(found[:, i], np.average(around, axis=1, weights=weights))
    np.testing.assert_array_equal(moving_average(runs, 1), runs)
    line = np.arange(12.0)[None]
    np.testing.assert_allclose(moving_average(line, 10), line)


def test_means_errors_and_areas_are_those_of_the_runs():
    curve = Curve(np.array([100, 200, 400]), np.array([[0.2, 0.4, 0.8], [0.4, 0.4, 0.4]]))
    np.testing.assert_allclose(curve.mean(), [0.3, 0.4, 0.6])
    np.testing.assert_allclose(curve.error(), [0.1, 0, 0.2], atol=1e-12)
    assert curve.at(200) == pytest.approx((0.4, 0))
    assert curve.at(300) is None
    # The trapezoids by hand: (0.3 * 100 + 0.6 * 200) / 300 = 0.5, and 0.4.
    assert curve.area() == pytest.approx((0.45, 0.05))
    assert curve.labels_to_reach(0.35, window=1) == 200
    assert curve.labels_to_reach(0.9, window=1) is None
    alone = Curve(np.array([100]), np.array([[0.5]]))
    assert alone.area()[0] == 0.5
    assert np.isnan([alone.area()[1], *alone.error()]).all()  # not known


def test_curves_are_of_the_runs_that_got_the_furthest_within_the_suite():
    table = {
        "key": ["a", "a", "a", "b", "b", "c"],
        "round": [1, 2, 3, 2, 1, 1],
        "n_labels": [10, 20, 30, 20, 10, 10],
        "f1": [0.1, 0.2, 0.3, 0.4, 0.2, 0.9],
        "rare_found": [1, 2, 3, 4, 5, 6],
    }
    keys = {"galaxy": ["a", "b"], "random": ["c"], "none": ["d"]}
    found = curves_of(table, "f1", keys, rounds=2)
    assert list(found) == ["galaxy", "random"]
    assert found["galaxy"].n_labels.tolist() == [10, 20]
    np.testing.assert_allclose(found["galaxy"].runs, [[0.1, 0.2], [0.2, 0.4]])
    longer = curves_of(table, "f1", keys, rounds=9)["galaxy"]
    np.testing.assert_allclose(longer.runs, [[0.1, 0.2, 0.3]])
    share = curves_of(table, "rare_share", {"galaxy": ["a"]}, rounds=9)["galaxy"]
    np.testing.assert_allclose(share.runs, [[0.1, 0.1, 0.1]])
