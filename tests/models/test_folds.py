"""Which labels are left out together."""

import numpy as np

from galaxy_al.models.folds import even_folds


def test_folds_are_even_in_every_class():
    targets = np.repeat([0, 1, 2], [3, 50, 7])
    folds = even_folds(targets, seed=0)
    for k in range(3):
        counts = np.bincount(folds[targets == k], minlength=5)
        assert counts.max() - counts.min() <= 1


def test_without_any_fold_there_are_labels_left_to_learn_from():
    for seed in range(200):
        folds = even_folds(np.array([0, 1]), seed)
        assert len(np.unique(folds)) == 2
