import numpy as np
import pytest

from galaxy_al.experiments.curves import Curve, curves_of, moving_average


def test_a_moving_average_is_the_mean_around_each_round():
    runs = np.random.default_rng(0).random((3, 24))
    found = moving_average(runs, 10)
    for i in range(24):
        around = runs[:, max(i - 5, 0) : i + 5]
        np.testing.assert_allclose(found[:, i], around.mean(axis=1))
    np.testing.assert_allclose(moving_average(runs, 1), runs)
    np.testing.assert_allclose(moving_average(np.full((1, 7), 3.0), 10), 3)


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
    assert alone.area() == (0.5, 0)
    assert alone.error().tolist() == [0]


def test_curves_go_as_far_as_all_runs_of_a_strategy():
    table = {
        "key": ["a", "a", "a", "b", "b", "c"],
        "round": [1, 2, 3, 2, 1, 1],
        "n_labels": [10, 20, 30, 20, 10, 10],
        "f1": [0.1, 0.2, 0.3, 0.4, 0.2, 0.9],
        "rare_found": [1, 2, 3, 4, 5, 6],
    }
    found = curves_of(table, "f1", {"galaxy": ["a", "b"], "random": ["c"], "none": ["d"]})
    assert list(found) == ["galaxy", "random"]
    assert found["galaxy"].n_labels.tolist() == [10, 20]
    np.testing.assert_allclose(found["galaxy"].runs, [[0.1, 0.2], [0.2, 0.4]])
    share = curves_of(table, "rare_share", {"galaxy": ["a"]})["galaxy"]
    np.testing.assert_allclose(share.runs, [[0.1, 0.1, 0.1]])
