import numpy as np

from galaxy_al.experiments.demo import STRATEGIES_SHOWN, DemoRun, digits_pool, summary
from galaxy_al.learner import Seconds
from galaxy_al.simulation import Round


def test_three_digits_are_rare_about_two_percent_each():
    pool = digits_pool()
    shares = np.bincount(pool.truth) / len(pool.truth)
    assert len(shares) == 4
    assert np.abs(shares[:3] - 0.02).max() < 0.002
    assert len(pool.embeddings) == len(pool.truth)


def step(n_labels, accuracy):
    return Round(n_labels, accuracy, 0.0, 0.0, 0, (), {}, Seconds(0, 0, 0))


def test_the_summary_is_the_mean_and_its_standard_error():
    runs = [
        DemoRun(name, seed, [step(20, value), step(40, 0.5)])
        for name in STRATEGIES_SHOWN
        for seed, value in enumerate([0.2, 0.4, 0.9])
    ]
    mean, error = summary(runs, "balanced_accuracy")["galaxy"]
    np.testing.assert_allclose(mean, [0.5, 0.5])
    # The variance of 0.2, 0.4, 0.9 with n - 1 is 0.13; the error is the root of a third of it.
    np.testing.assert_allclose(error, [np.sqrt(0.13 / 3), 0])
