"""Whether the balanced accuracy that random labels give holds, and how narrow it is.

Printed by benchmarks/audit.py. Random labels are drawn again 200 times for each model; and the ones
that fair-cuts really asked, with the held-out predictions of the models that learned from them, are
judged as well, beside the figure by cross-validation.
"""

from __future__ import annotations

import numpy as np

from audit_pools import BAD, SIZES, beginning, trained
from galaxy_al.audit.betting import ERROR, is_missed
from galaxy_al.audit.measures import UPPER_OF_RECALL
from galaxy_al.audit.random_sample import Answer, random_audit, strata_of_decisions
from galaxy_al.labelling.evaluation import accuracy_interval

RANDOM = (20, 50, 100, 200)
N_TIMES = 200


def show_accuracy(names):
    """Two tables: drawn again, and as it was asked."""
    print("\n| pool | labels | random | missed | mean interval | truth |")
    print("|---|---|---|---|---|---|")
    rng = np.random.default_rng(0)
    for name in names:
        for n_labels, n_random in zip(SIZES, RANDOM):
            if f"labels{n_labels}" not in trained(name):
                continue
            begin = beginning(name, n_labels)
            n_missed, ends = 0, []
            for time in range(N_TIMES):
                audit, truth = _drawn_again(begin, n_random, rng)
                n_missed += _is_missed(audit, truth)
                if time < 10:
                    ends.append((audit.balanced_accuracy().low, audit.balanced_accuracy().high))
            low, high = np.mean(ends, axis=0)
            print(
                f"| {name} | {n_labels} | {n_random} | {n_missed / N_TIMES:.1%} | "
                f"{low:.0%} to {high:.0%} | {truth.mean():.1%} |",
                flush=True,
            )
    print("\n| pool | labels | random | cross-validated | by the random labels | truth |")
    print("|---|---|---|---|---|---|")
    for name in names:
        if name in BAD:  # their models are not those of their labels
            continue
        for n_labels in SIZES:
            if f"labels{n_labels}" in trained(name):
                _show_as_asked(name, n_labels)


def _is_missed(audit, truth):
    games = [audit.recall_game(k) for k in range(len(truth))]
    error = ERROR / len(truth)
    return any(is_missed(game, t, error, UPPER_OF_RECALL) for game, t in zip(games, truth))


def _decisions(begin):
    """Of the whole pool; of labelled examples by models that did not know them."""
    decided = begin.balanced.copy()
    decided[begin.known] = begin.held_out_balanced
    n_classes = begin.proba.shape[1]
    truth = [np.mean(decided[begin.truth == k] == k) for k in range(n_classes)]
    return decided, np.array(truth)


def _drawn_again(begin, n_random, rng):
    """Random labels among the chosen ones, of a model that stays as it is."""
    decided, truth = _decisions(begin)
    chosen = begin.known[~begin.is_random]
    free = np.setdiff1d(np.arange(len(decided)), chosen)
    sample = rng.choice(free, n_random, replace=False)
    both = np.concatenate([chosen, sample])
    # A random order of all questions, in which each random one is a draw from what is left.
    is_random = rng.permutation(np.arange(len(both)) >= len(chosen))
    order = np.empty_like(both)
    order[~is_random], order[is_random] = chosen, sample
    return _audit(begin, decided, order, is_random), truth


def _audit(begin, decided, order, is_random):
    strata = strata_of_decisions(decided, begin.proba)
    labels = begin.truth[order]
    answers = [Answer(int(i), int(k), bool(r)) for i, k, r in zip(order, labels, is_random)]
    return random_audit(answers, strata)


def _show_as_asked(name, n_labels):
    begin = beginning(name, n_labels)
    decided, truth = _decisions(begin)
    audit = _audit(begin, decided, begin.known, begin.is_random)
    found, rough = audit.balanced_accuracy(), _cross_validated(begin)
    print(
        f"| {name} | {n_labels} | {begin.is_random.sum()} | "
        f"{rough.accuracy:.1%} ({rough.low:.0%} to {rough.high:.0%}) | "
        f"{found.value:.1%} ({found.low:.0%} to {found.high:.0%}) | {truth.mean():.1%} |",
        flush=True,
    )


def _cross_validated(begin):
    """As `galaxy_al.labelling.evaluation.cross_validate`."""
    labels, counts = begin.truth[begin.known], []
    is_right = begin.held_out_balanced == labels
    for k in range(begin.proba.shape[1]):
        judged = labels == k
        if k == begin.proba.shape[1] - 1 and (judged & begin.is_random).any():
            judged &= begin.is_random
        counts.append((0.75 * is_right[judged].sum(), 0.75 * judged.sum()))
    return accuracy_interval(counts)
