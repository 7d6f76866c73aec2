import numpy as np
import pytest

from galaxy_al.simulation import noisy_annotator


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
