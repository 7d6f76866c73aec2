import numpy as np
import pytest
from sklearn import metrics

from galaxy_al import Learner, Snapshot
from galaxy_al.metrics import calibration_error
from galaxy_al.shards import sharded
from galaxy_al.simulation import noisy_annotator, play_round, simulate


def answers(truth, flip_rate, seed=0, **kwargs):
    annotator = noisy_annotator(truth, flip_rate, np.random.default_rng(seed), **kwargs)
    return np.array([annotator(index) for index in range(len(truth))])


def test_so_many_answers_are_wrong_and_all_wrong_classes_as_likely():
    truth = np.repeat(np.arange(4), 10_000)
    given = answers(truth, 0.3)
    wrong = given != truth
    assert wrong.mean() == pytest.approx(0.3, abs=0.01)
    for label in range(4):
        others = np.bincount(given[wrong & (truth == label)], minlength=4)
        assert others[label] == 0
        np.testing.assert_allclose(np.delete(others, label), 1000, atol=130)


def test_who_never_errs_tells_the_truth_and_who_is_asked_again_repeats_the_answer():
    truth = np.random.default_rng(1).integers(0, 3, 500)
    np.testing.assert_array_equal(answers(truth, 0), truth)
    annotator = noisy_annotator(truth, 0.5, np.random.default_rng(0))
    assert [annotator(7) for _ in range(20)] == [annotator(7)] * 20
    np.testing.assert_array_equal(answers(truth, 0.5, seed=3), answers(truth, 0.5, seed=3))


def test_wrong_answers_may_name_classes_that_the_truth_does_not_have():
    assert set(answers(np.zeros(200, dtype=int), 0.5, n_classes=3)) == {0, 1, 2}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], 1.5), "flip_rate must be between 0 and 1, got 1.5"),
        (([0, 1], 0.1, 1), "n_classes must be at least 2 and more than the largest class, got 1"),
        (([0, 0], 0.1), "n_classes must be at least 2"),
        (([], 0.1), "truth must be a list of classes"),
        (([0, -1], 0.1), "truth must be a list of classes"),
        (([0.5, 1.0], 0.1), "truth must be a list of classes"),
        (([[0, 1]], 0.1), "truth must be a list of classes"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    truth, flip_rate, *n_classes = arguments
    with pytest.raises(ValueError, match=message):
        noisy_annotator(truth, flip_rate, np.random.default_rng(0), *n_classes)


class Said:
    """A model that says the same whatever its labels are."""

    def __init__(self, proba, class_priors):
        self.proba, self.class_priors = proba, class_priors

    def fit(self, pool, labels):
        return self

    def snapshot(self, pool, labels=None):
        return Snapshot(self.proba, labels, class_priors=self.class_priors)


def best_decisions(proba):
    """Which examples to call rare for the best F1 if the probabilities are true, by trying all."""
    thresholds = np.unique(proba)
    expected = [
        2 * proba[proba >= t].sum() / ((proba >= t).sum() + proba.sum()) for t in thresholds
    ]
    return np.where(proba >= thresholds[np.argmax(expected)], 0, 1)


def test_a_round_is_judged_by_the_right_view_of_the_model():
    rng = np.random.default_rng(0)
    rare = rng.beta(0.3, 4, 500)
    truth = np.where(rng.random(500) < rare, 0, 1)
    proba, priors = np.stack([rare, 1 - rare], axis=1), np.array([0.07, 0.93])
    learner = Learner(
        np.zeros((500, 1)), 2, strategy="random", head=Said(proba, priors), batch_size=50
    )
    judged = play_round(learner, truth)

    as_frequent = np.where(rare / 0.07 > (1 - rare) / 0.93, 0, 1)
    expected = metrics.balanced_accuracy_score(truth, as_frequent)
    assert judged.balanced_accuracy == pytest.approx(expected)
    decided = best_decisions(rare)
    assert (decided != as_frequent).any()
    assert (decided != proba.argmax(axis=1)).any()
    for name in ("f1", "precision", "recall"):
        score = getattr(metrics, f"{name}_score")(truth, decided, pos_label=0)
        assert getattr(judged, name) == pytest.approx(score)
    assert judged.average_precision == pytest.approx(
        metrics.average_precision_score(truth == 0, rare)
    )
    assert judged.log_loss == pytest.approx(metrics.log_loss(truth, proba))
    assert judged.brier == pytest.approx(2 * metrics.brier_score_loss(truth == 0, rare))
    assert judged.calibration_error == pytest.approx(calibration_error(truth == 0, rare))
    assert judged.rare_found == np.count_nonzero(truth[list(judged.indices)] == 0)


def test_scores_from_elsewhere_are_judged_as_they_are():
    truth = np.array([0, 0, 1, 1, 1, 1])
    model = Said(np.full((6, 2), 0.5), np.array([0.5, 0.5]))
    learner = Learner(np.zeros((6, 1)), 2, strategy="random", head=model, batch_size=2)
    exact = np.eye(2)[truth]
    judged = play_round(learner, truth, scores=lambda learner: exact)
    assert judged.balanced_accuracy == judged.f1 == judged.precision == judged.recall == 1
    assert judged.log_loss == judged.brier == judged.calibration_error == 0


@pytest.mark.parametrize("strategy", [None, "galaxy", "base"])
@pytest.mark.parametrize("goal", ["classifier", "find-all"])
def test_a_pool_in_shards_is_simulated_as_in_memory(strategy, goal):
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], [12, 30, 1500])
    pool = rng.normal(size=(len(truth), 16)) + 1.5 * rng.normal(size=(3, 16))[truth]
    pool = pool.astype(np.float16)[(order := rng.permutation(len(truth)))]
    options = {"strategy": strategy, "goal": goal, "batch_size": 20, "rounds": 5}
    in_memory = simulate(pool, truth[order], **options)
    in_shards = simulate(sharded(pool, [0, 100, 1100, len(pool)]), truth[order], **options)
    assert in_memory == in_shards


def test_a_class_that_is_missing_from_the_pool_is_named():
    truth = np.repeat([0, 2], [5, 15])
    with pytest.raises(ValueError, match="every class, 0 to 2, got none of class 1"):
        simulate(np.eye(20), truth, batch_size=5, rounds=1)
