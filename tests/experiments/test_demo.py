from dataclasses import fields

import numpy as np

from galaxy_al.experiments.demo import STRATEGIES_SHOWN, DemoRun, demo_curves, digits_pool
from galaxy_al.learner import Seconds
from galaxy_al.simulation import Round


def test_three_digits_are_rare_about_two_percent_each():
    pool = digits_pool()
    shares = np.bincount(pool.truth) / len(pool.truth)
    assert len(shares) == 4
    assert np.abs(shares[:3] - 0.02).max() < 0.002
    assert len(pool.embeddings) == len(pool.truth)


def step(n_labels, accuracy):
    measures = {field.name: 0 for field in fields(Round)}
    others = {"indices": (), "generator_state": {}, "seconds": Seconds(0, 0, 0)}
    return Round(**measures | others | {"n_labels": n_labels, "balanced_accuracy": accuracy})


def test_the_curves_are_means_and_their_standard_errors():
    runs = [
        DemoRun(name, seed, [step(20, value), step(40, 0.5)])
        for name in STRATEGIES_SHOWN
        for seed, value in enumerate([0.2, 0.4, 0.9])
    ]
    curve = demo_curves(runs, "balanced_accuracy")["galaxy"]
    assert curve.n_labels.tolist() == [20, 40]
    np.testing.assert_allclose(curve.mean(), [0.5, 0.5])
    # The variance of 0.2, 0.4, 0.9 with n - 1 is 0.13; the error is the root of a third of it.
    np.testing.assert_allclose(curve.error(), [np.sqrt(0.13 / 3), 0], atol=1e-12)
