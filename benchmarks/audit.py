"""Whether the intervals of an audit hold, and how many labels they take.

Run:  GALAXY_AL_DATA=FOLDER .venv/bin/python benchmarks/audit.py [POOL ...]     (about 20 minutes)

FOLDER is as for benchmarks/head.py; the models are trained first (benchmarks/audit_pools.py).
Prints the tables of docs/appendix/audit.md: of 1,000 audits of each of ten pools the share in which
an interval ever missed the truth, the widths, and the labels that a uniform sample needs for the
same width. Found and prevalence hold exactly where the number left does.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.stats import beta, binom

from audit_accuracy import show_accuracy
from audit_pools import JUDGE, beginning
from galaxy_al.audit import betting
from galaxy_al.audit.betting import ERROR, is_missed
from galaxy_al.audit.draws import Draws
from galaxy_al.audit.measures import UPPER_OF_COUNTS, UPPER_OF_RECALL, Audit, Labeled
from galaxy_al.audit.sampling import believed, chances, make_strata

N_AUDITS, N_WIDTHS, N_DRAWS = 1000, 60, 500
TO_TARGET = ("cifar100-2", "banking77-3", "letters-3", "satellite-2", JUDGE[-1])
STOPS = (100, 200, 300, 500)
GRID = np.unique(np.geomspace(20, 20_000, 120).astype(int))


class Pool:
    """A pool when its audit begins, with the truth."""

    def __init__(self, name, more=()):
        begin = beginning(name)
        n_classes = begin.proba.shape[1]
        more = np.asarray(more, dtype=np.intp)  # labelled meanwhile
        known = np.append(begin.known, more)
        held_out = np.append(begin.held_out_decided, begin.decided[more])
        free = np.setdiff1d(begin.free, more)
        self.strata = make_strata(begin.proba, begin.decided, free)
        pairs = self.strata.of[free] * n_classes + begin.truth[free]
        shape = len(self.strata.decided), n_classes
        self.contents = np.bincount(pairs, minlength=shape[0] * shape[1]).reshape(shape)
        pairs = begin.truth[known] * n_classes + held_out
        self.confusion = np.bincount(pairs, minlength=n_classes**2).reshape(n_classes, n_classes)
        self.n_classes, self.begin = n_classes, begin
        self.n_draws = min(N_DRAWS, len(begin.truth) // 10)

    def truth(self, k):
        """Of a class: how many are left and are decided rightly of these, and the recall."""
        decided = self.strata.decided == k
        right, left = self.contents[decided, k].sum(), self.contents[:, k].sum()
        recall = (self.confusion[k, k] + right) / (self.confusion[k].sum() + left)
        return {"total": left, "right": right if decided.any() else None, "recall": recall}


def draw_audits(pool, n_audits, n_draws, rng):
    """The draws of many audits at once: strata, classes, n_free, chances, known of each."""
    left = np.repeat(pool.contents[None], n_audits, axis=0)
    hits = np.zeros_like(left)
    rows, every = [], np.arange(n_audits)
    for _ in range(n_draws):
        n_free, n_draws_of = left.sum(axis=2), hits.sum(axis=2)
        chance = chances(n_free, believed(pool.strata.expected, hits, n_draws_of), n_draws_of)
        stratum = _choose(chance, rng)
        label = _choose(left[every, stratum], rng)
        rows.append((stratum, label, n_free, chance, hits.copy()))
        left[every, stratum, label] -= 1
        hits[every, stratum, label] += 1
    return [np.stack(part, axis=1) for part in zip(*rows)]


def _choose(weights, rng):
    sums = weights.cumsum(axis=1)
    place = rng.random(len(weights)) * sums[:, -1]
    return (place[:, None] >= sums).sum(axis=1).clip(max=weights.shape[1] - 1)


def audit_of(pool, draws_made, number, n_draws):
    """One of the audits after some draws."""
    draws = Draws(*(part[number, :n_draws] for part in draws_made))
    known = draws.known[-1].copy()
    known[draws.strata[-1], draws.classes[-1]] += 1
    n_free = pool.contents.sum(axis=1) - known.sum(axis=1)
    return Audit(pool.strata, Labeled(pool.confusion), draws, n_free, known)


def missed(pool, draws_made):
    """The share of audits in which intervals ever missed: of the class with the most misses.

    Balanced accuracy holds where each recall does with its part of the error.
    """
    misses = {name: np.zeros(pool.n_classes) for name in ("left", "precision", "recall")}
    n_balanced, n_audits = 0, len(draws_made[0])
    truth = [pool.truth(k) for k in range(pool.n_classes)]
    for number in range(n_audits):
        audit = audit_of(pool, draws_made, number, pool.n_draws)
        recalls = [audit.recall_game(k) for k in range(pool.n_classes)]
        for k, values in enumerate(truth):
            total, recall = values["total"], values["recall"]
            misses["left"][k] += is_missed(audit.total_game(k), total, ERROR, UPPER_OF_COUNTS)
            misses["recall"][k] += is_missed(recalls[k], recall, ERROR, UPPER_OF_RECALL)
            if (right := values["right"]) is not None:
                misses["precision"][k] += is_missed(audit.precision_game(k), right)
        error = ERROR / pool.n_classes
        n_balanced += any(
            is_missed(game, values["recall"], error, UPPER_OF_RECALL)
            for game, values in zip(recalls, truth)
        )
    found = {name: count.max() / n_audits for name, count in misses.items()}
    return {**found, "balanced accuracy": n_balanced / n_audits}


def widths(pool, draws_made, stop, k=0):
    """Mean ends of what is left and of recall of a class, in a part of the audits."""
    ends = []
    for number in range(N_WIDTHS):
        audit = audit_of(pool, draws_made, number, stop)
        left, recall = audit.of_class(k).left, audit.recall(k)
        ends.append((left.low, left.high, recall.low, recall.high))
    return np.mean(ends, axis=0)


def fixed_width(pool, draws_made, stop, k=0):
    """The mean width of what is left if all bets are for so many draws."""
    kept = betting._HORIZONS, betting._PARTS
    betting._HORIZONS, betting._PARTS = np.array([float(stop)]), np.ones(1)
    try:
        found = widths(pool, draws_made, stop, k)
    finally:
        betting._HORIZONS, betting._PARTS = kept
    return found[1] - found[0]


def uniform_widths(pool, k=0):
    """For each size of a uniform sample, the mean widths of left and recall by Clopper-Pearson.

    Recall is bounded by the numbers of right and of missed examples, each at 97.5%.
    """
    size, left = pool.contents.sum(), pool.contents[:, k].sum()
    right = pool.contents[pool.strata.decided == k, k].sum()
    n_right = pool.confusion[k, k]
    n_missed = pool.confusion[k].sum() - n_right
    rng, found = np.random.default_rng(0), []
    for n in GRID[size > GRID]:
        hits = np.arange(n + 1)
        mass = binom.pmf(hits, n, left / size)
        low, high = (ends[mass > 1e-9] for ends in _clopper_pearson(hits, n, 0.05))
        width = (high - low) @ mass[mass > 1e-9] * size
        rights = rng.binomial(n, right / size, 400)
        misses = rng.binomial(n - rights, (left - right) / (size - right))
        r_low, r_high = (n_right + size * end for end in _clopper_pearson(rights, n, 0.025))
        m_low, m_high = (n_missed + size * end for end in _clopper_pearson(misses, n, 0.025))
        recall = r_high / np.maximum(r_high + m_low, 1e-9) - r_low / np.maximum(r_low + m_high, 1)
        found.append((n, width, recall.mean()))
    return np.array(found)


def _clopper_pearson(hits, n, error):
    low = np.where(hits > 0, beta.ppf(error / 2, np.maximum(hits, 1), n - hits + 1), 0.0)
    high = np.where(hits < n, beta.ppf(1 - error / 2, hits + 1, np.maximum(n - hits, 1)), 1.0)
    return low, high


def labels_for(table, column, width):
    """The size of the uniform sample that is as narrow; infinite if none is."""
    enough = table[:, column] <= width
    if not enough.any():
        return np.inf
    place = int(np.argmax(enough))
    if not place:
        return table[0, 0]
    (n0, w0), (n1, w1) = table[place - 1][[0, column]], table[place][[0, column]]
    return float(np.exp(np.interp(np.log(width), np.log([w1, w0]), np.log([n1, n0]))))


def labels_to_target(name, target=0.95, n_audits=10, n_most=12_000, n_vain=200):
    """Labels until at least ``target`` of class 0 is found: buscarpy's, and ours.

    Both label the likeliest first, by the same model. Buscarpy's criterion is looked at 40 times.
    Ours draws as soon as ``n_vain`` in a row were of another class.
    """
    from buscarpy import calculate_h0

    begin = beginning(name)
    order = begin.free[np.argsort(-begin.proba[begin.free, 0], kind="stable")]
    labels = (begin.truth[np.concatenate([begin.known, order])] == 0).astype(np.int8)
    stops = np.inf, np.nan
    n_known = len(begin.known)
    for n in np.unique(np.geomspace(n_known + 100, len(labels), 40).astype(int)):
        if calculate_h0(labels[:n], len(labels), target) < 0.05:
            stops = n - n_known, labels[:n].sum() / labels.sum()
            break
    in_vain = np.convolve(labels[n_known:], np.ones(n_vain), "valid") == 0
    n_first = int(np.argmax(in_vain)) + n_vain
    pool = Pool(name, order[:n_first])
    found = labels[: n_known + n_first].sum() / labels.sum()
    n_most = min(n_most, int(pool.contents.sum()) - 1)
    draws_made = draw_audits(pool, n_audits, n_most, np.random.default_rng(1))
    needed = [_draws_to_target(pool, draws_made, i, n_most, target) for i in range(n_audits)]
    return stops, found, n_first + np.median(needed)


def _draws_to_target(pool, draws_made, number, n_most, target):
    first, last = 1, n_most + 1
    while last - first > max(first // 50, 1):
        middle = (first + last) // 2
        low = audit_of(pool, draws_made, number, middle).of_class(0).found.low
        first, last = (first, middle) if low >= target else (middle, last)
    return last if last <= n_most else np.inf


def show_coverage_and_widths(names):
    """The first two tables."""
    print("| pool | draws | left | precision | recall | balanced accuracy |")
    print("|---|---|---|---|---|---|")
    pools, draws = {}, {}
    for name in names:
        pool = pools[name] = Pool(name)
        draws_made = draw_audits(pool, N_AUDITS, pool.n_draws, np.random.default_rng(0))
        draws[name] = [part[:N_WIDTHS].copy() for part in draws_made]
        cells = " | ".join(f"{share:.1%}" for share in missed(pool, draws_made).values())
        print(f"| {name} | {pool.n_draws} | {cells} |", flush=True)
    print("\n| pool | draws | left | of | x uniform | one look | recall | of | x uniform |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, pool in pools.items():
        uniform, truth = uniform_widths(pool), pool.truth(0)
        for stop in STOPS:
            if stop > pool.n_draws:
                continue
            low, high, r_low, r_high = widths(pool, draws[name], stop)
            times = stop / labels_for(uniform, 1, high - low)
            r_times = stop / labels_for(uniform, 2, r_high - r_low)
            once = stop / labels_for(uniform, 1, fixed_width(pool, draws[name], stop))
            print(
                f"| {name} | {stop} | {low:.0f} to {high:.0f} | {truth['total']} | {times:.2f} | "
                f"{once:.2f} | {r_low:.2f} to {r_high:.2f} | {truth['recall']:.2f} | "
                f"{r_times:.2f} |",
                flush=True,
            )


def show_labels_to_target(names):
    """The third table."""
    print("\n| pool | buscarpy stops | recall then | before ours draws | ours says 0.95 |")
    print("|---|---|---|---|---|")
    for name in names:
        (n_labels, recall), found, ours = labels_to_target(name)
        print(f"| {name} | {n_labels} | {recall:.3f} | {found:.3f} | {ours:.0f} |", flush=True)


if __name__ == "__main__":
    pools_to_judge = sys.argv[1:] or JUDGE
    show_coverage_and_widths(pools_to_judge)
    show_labels_to_target([name for name in pools_to_judge if name in TO_TARGET])
    show_accuracy(pools_to_judge)
