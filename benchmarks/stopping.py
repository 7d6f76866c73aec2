"""When to stop: is the rule right, and what does it cost?

Run:  GALAXY_AL_DATA=FOLDER GALAXY_AL_RUNS=OTHER .venv/bin/python benchmarks/stopping.py [WORD ...]

OTHER keeps the trajectories (`stopping_runs.py`), which are made if they are missing. Each is
simulated once; what is drawn at random is simulated many times per trajectory. Prints the tables
of docs/appendix/stopping.md. The word ``chosen`` prints those of the pools that settings were
chosen on; ``find-all`` or ``classifier``, the rules for one goal; ``blind``, how often
the rule is wrong in the worst case.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from buscarpy import calculate_h0
from scipy.special import logsumexp
from scipy.stats import binom

from galaxy_al.advice import stopping
from galaxy_al.advice.forecast import (
    ENOUGH_FOUND,
    expected_average_precision,
    forecast_finds,
    forecast_rise,
)
from galaxy_al.advice.left import MIN_LABELS, left_by_audit, left_by_model
from galaxy_al.advice.proof import allowed_left
from galaxy_al.advice.random_labels import RandomLabels, _Belief
from galaxy_al.audit.draws import Draws
from galaxy_al.audit.measures import Audit, Labeled
from galaxy_al.audit.sampling import believed, chances, make_strata
from galaxy_al.models.estimates import Interval
from stopping_runs import CHOSEN, JUDGED, SEEDS, run

TARGET, ERROR = 0.9, 0.05
RULE_ERROR = 0.03  # of a first audit
REPEATS, AUDITS = {"find-all": 20, "classifier": 4}, {"find-all": 2, "classifier": 1}
GOALS = ("find-all", "classifier")


class Project:
    """A pool on which a strategy and random draws take turns."""

    def __init__(self, trajectory, rng):
        self.run, self.rng = trajectory, rng
        self.is_rare, size = trajectory.is_rare, len(trajectory.order)
        self.is_free = np.ones(size, dtype=bool)
        self.n_free, self.n_found, self.dry = size, 0, 0
        self.at, self.state, self.n_dry = 0, None, 0

    def label(self, index, by_strategy):
        self.is_free[index] = False
        self.n_free -= 1
        rare = bool(self.is_rare[index])
        self.n_found += rare
        self.dry = 0 if rare else self.dry + by_strategy
        return rare

    def ask(self):
        """The next example of the strategy."""
        while not self.is_free[self.run.order[self.at]]:
            self.at += 1
        index = self.run.order[self.at]
        self.label(index, by_strategy=True)
        return index

    @property
    def is_dry(self):
        """As `advise_stop`, which is asked again when much has changed."""
        state = self.n_found, self.n_free // 50
        if state != self.state:
            self.state = state
            advice = stopping.advise_stop(TARGET, self.n_found, self.n_free, self.dry)
            self.n_dry = advice.n_dry
        return self.n_found and self.dry >= self.n_dry

    @property
    def n_labels(self):
        return len(self.is_free) - self.n_free

    @property
    def rare(self):
        """The probabilities of being rare by the last model."""
        number = np.searchsorted(self.run.n_labels, self.at, side="right") - 1
        return self.run.proba[max(number, 0)]

    def outcome(self):
        return self.n_found >= TARGET * self.is_rare.sum(), self.n_labels


class EvenDraws:
    """Draws from all free examples, and the exact sequence."""

    def __init__(self, project):
        self.project, self.rows = project, []
        self.expected = float(project.rare[project.is_free].sum())
        self.belief, self.logs, self.n_seen = None, 0.0, 0

    def asked(self, index):
        pass

    def draw(self):
        project = self.project
        index = project.rng.choice(np.flatnonzero(project.is_free))
        before = project.n_free, project.n_found
        self.rows.append((*before, project.label(index, by_strategy=False)))

    def holds(self):
        """As `interval_of_left`, but only the smallest number that must be given up is tried."""
        limit = allowed_left(self.project.n_found, TARGET)
        if limit >= self.project.n_free:
            return True
        draws = RandomLabels(*(np.array(part) for part in zip(*self.rows)))
        new = RandomLabels(*(np.array(part) for part in zip(*self.rows[self.n_seen :])))
        self.n_seen = len(self.rows)
        if self.belief is None:
            self.belief = _Belief.before(draws, self.expected)
        self.logs = self.logs + new.log_likelihood(self.belief.totals)
        mean = logsumexp(self.belief.log_weights + self.logs)
        return _is_proven(draws, mean, self.project.n_found)


def _is_proven(draws, log_mean, n_found):
    """Whether all numbers are given up with which less than the target is found."""
    first = n_found + allowed_left(n_found, TARGET) + 1
    of_first, of_next = draws.log_likelihood(np.array([first, first + 1]))
    return of_first <= log_mean + np.log(RULE_ERROR) and of_next < of_first


class AuditDraws:
    """The draws of an audit, with strata by the model as it was when the audit began."""

    def __init__(self, project):
        self.project = project
        table = np.stack([project.rare, 1 - project.rare], axis=1)
        decided = np.where(project.rare >= 0.5, 0, 1)
        self.strata = make_strata(table, decided, np.flatnonzero(project.is_free))
        self.known = np.zeros_like(self.strata.expected, dtype=np.int64)
        self.n_free, self.hits = self.strata.sizes, self.known.copy()
        self.n_draws, self.rows = np.zeros_like(self.n_free), []

    def asked(self, index):
        stratum = self.strata.of[index]
        self.n_free[stratum] -= 1
        self.known[stratum, 0 if self.project.is_rare[index] else 1] += 1

    def draw(self):
        project = self.project
        rates = believed(self.strata.expected, self.hits, self.n_draws)
        chance = chances(self.n_free, rates, self.n_draws)
        stratum = project.rng.choice(len(chance), p=chance)
        members = np.flatnonzero(project.is_free & (self.strata.of == stratum))
        index = project.rng.choice(members)
        label = 0 if project.label(index, by_strategy=False) else 1
        self.rows.append((stratum, label, self.n_free.copy(), chance, self.known.copy()))
        self.n_draws[stratum] += 1
        self.hits[stratum, label] += 1
        self.asked(index)

    def holds(self):
        draws = Draws(*(np.array(part) for part in zip(*self.rows)))
        audit = Audit(self.strata, _nothing(), draws, self.n_free, self.known)
        left = left_by_audit(audit, 2 * RULE_ERROR)
        return left.high <= allowed_left(self.project.n_found, TARGET)


def _nothing():
    return Labeled(np.zeros((2, 2), dtype=np.int64))


def our_rule(trajectory, kind, rng):
    """Ask while the strategy finds, draw once it is dry, until the rule holds."""
    project, sample, n_draws, next_look = Project(trajectory, rng), None, 0, 10
    while project.n_free:
        if not project.is_dry:
            index = project.ask()
            if sample is not None:
                sample.asked(index)
            continue
        sample = sample or kind(project)
        sample.draw()
        n_draws += 1
        if n_draws >= next_look:
            if sample.holds():
                break
            next_look = n_draws + max(10, n_draws // 20)
    return project.outcome()


def prefix_rule(trajectory, is_over, growing=0.0):
    """The strategy asks until a rule says that it is over; it is asked at intervals."""
    rare, n = trajectory.is_rare[trajectory.order].astype(int), 25
    while n < len(rare):
        if is_over(rare[:n], len(rare)):
            return rare[:n].sum() >= TARGET * rare.sum(), n
        n += max(25, int(growing * n))
    return True, len(rare)


def buscar(labels, size):
    return labels.sum() > 0 and calculate_h0(labels, size, TARGET) < ERROR


def in_a_row(count):
    """ASReview's NConsecutiveIrrelevant."""
    return lambda labels, _: len(labels) > count and not labels[-count:].any()


def part_of(share):
    """ASReview's QuantileLabeled."""
    return lambda labels, size: len(labels) / size >= share


def quantile_rule(trajectory, rng):
    """Lewis, Yang and Frieder: the strategy must find again what a random sample found.

    The sample ends with as few rare examples as can prove the target at all.
    """
    needed = next(r for r in range(1, 1000) if binom.pmf(r, r, TARGET) <= ERROR)
    size = len(trajectory.order)
    rows = rng.permutation(size)
    found = np.cumsum(trajectory.is_rare[rows])
    if found[-1] < needed:
        return True, size
    sample = rows[: int(np.searchsorted(found, needed)) + 1]
    place = np.empty(size, dtype=int)
    place[trajectory.order] = np.arange(size)
    last = place[sample[trajectory.is_rare[sample]]].max()
    labeled = np.union1d(sample, trajectory.order[: last + 1])
    n_found = trajectory.is_rare[labeled].sum()
    return n_found >= TARGET * trajectory.is_rare.sum(), len(labeled)


def oracle(trajectory):
    """Labels by the strategy until the target is reached."""
    rare = np.cumsum(trajectory.is_rare[trajectory.order])
    return True, int(np.searchsorted(rare, np.ceil(TARGET * rare[-1]))) + 1


def repeated(rule, times, *arguments):
    """The results of a rule with other draws, and their mean."""
    return [rule(*arguments, np.random.default_rng([9, i])) for i in range(times)]


METHODS = {
    "reached": lambda t, _: [oracle(t)],
    "audit": lambda t, goal: repeated(lambda *a: our_rule(t, AuditDraws, *a), AUDITS[goal]),
    "even draws": lambda t, goal: repeated(lambda *a: our_rule(t, EvenDraws, *a), REPEATS[goal]),
    "buscarpy": lambda t, _: [prefix_rule(t, buscar, growing=0.05)],
    "50 in a row": lambda t, _: [prefix_rule(t, in_a_row(50))],
    "200 in a row": lambda t, _: [prefix_rule(t, in_a_row(200))],
    "a tenth": lambda t, _: [prefix_rule(t, part_of(0.1))],
    "quantile": lambda t, goal: repeated(lambda *a: quantile_rule(t, *a), REPEATS[goal]),
}


def row(*cells):
    print(f"| {' | '.join(str(cell) for cell in cells)} |", flush=True)


def print_rules(pools, goal):
    """Labels until each rule holds, and how often it is right then."""
    row("pool", "rare", *METHODS)
    row(*["---"] * (2 + len(METHODS)))
    rights = {name: [] for name in METHODS}
    costs = {name: [] for name in METHODS}
    for pool in pools:
        for seed in SEEDS:
            trajectory = run(pool, goal, seed)
            size, cells = len(trajectory.order), []
            for name, method in METHODS.items():
                right, labels = np.mean(method(trajectory, goal), axis=0)
                rights[name].append(right)
                costs[name].append(labels / size)
                wrong = "" if right > 0.999 else f" ({right:.0%})"
                cells.append(f"{labels:,.0f}{wrong}")
            row(pool, f"{trajectory.is_rare.sum():,} of {size:,}", *cells)
    row("**right**", "", *(f"{np.mean(right):.1%}" for right in rights.values()))
    row("**share of the pool**", "", *(f"{np.mean(cost):.0%}" for cost in costs.values()))
    print()


BLIND = ((2000, 89, 11), (3000, 170, 30))  # free, found, left
BLIND_REPEATS = 200


def print_blind():
    """How often the rule is wrong where the strategy is blind for all that is left."""
    row("not labelled", "found", "left", "expected", "wrong", "draws")
    row(*["---"] * 6)
    for n_free, n_found, n_left in BLIND:
        for expected in (0, n_left):
            results = [
                _blind(n_free, n_found, n_left, expected, np.random.default_rng([8, i]))
                for i in range(BLIND_REPEATS)
            ]
            right, labels = np.mean(results, axis=0)
            row(f"{n_free:,}", n_found, n_left, expected, f"{1 - right:.1%}", f"{labels:,.0f}")
    print()


def _blind(n_free, n_found, n_left, expected, rng):
    rare = rng.permutation(np.arange(n_free) < n_left)
    found = n_found + np.cumsum(rare)
    everything = RandomLabels(n_free - np.arange(n_free), found - rare, rare)
    n = 20
    while n < n_free:
        draws = RandomLabels(everything.n_free[:n], everything.n_found[:n], everything.is_rare[:n])
        now = int(found[n - 1])
        belief = _Belief.before(draws, expected)
        if _is_proven(draws, belief.log_mean_likelihood(draws), now):
            return now >= TARGET * (n_found + n_left), n
        n += max(10, n // 10)
    return True, n_free


def print_forecasts(pools, goals):
    """How often the intervals of forecasts and of what is left hold the truth."""
    held = {}

    for pool in pools:
        for goal in goals:
            for seed in SEEDS:
                each = {}
                _forecasts(run(pool, goal, seed), lambda *a, each=each: _add(each, *a))
                for what, rows in each.items():
                    held.setdefault(what, []).append(np.mean(rows, axis=0))
    row("", "trajectories", "held", "worst", "error of the forecast", "error of the simple one")
    row(*["---"] * 6)
    for what, rows in held.items():
        inside, error, simple = np.mean(rows, axis=0)
        worst = min(one[0] for one in rows)
        row(what, len(rows), f"{inside:.1%}", f"{worst:.0%}", f"{error:.3g}", f"{simple:.3g}")
    print()


def _add(each, what, interval, truth, simple):
    inside = interval.low <= truth <= interval.high
    errors = abs(interval.value - truth), abs(simple - truth)
    each.setdefault(what, []).append((inside, *errors))


def _forecasts(trajectory, add):
    rare, order = trajectory.is_rare[trajectory.order], trajectory.order
    counts, history = np.bincount(trajectory.truth), []
    for number, n in enumerate(trajectory.n_labels.tolist()):
        proba, n_found = trajectory.proba[number], int(rare[:n].sum())
        planned = trajectory.planned[number]
        asked = rare[:n][~trajectory.is_random[:n]]
        for ahead in (50, 100, 200):
            found = forecast_finds(proba[planned[planned >= 0]], asked, ahead, n_found)
            if found is not None and n + ahead <= trajectory.n_simulated:
                simple = asked[-ahead:].mean() * ahead
                add(f"finds of {ahead}", found, rare[n : n + ahead].sum(), simple)
        known = proba.copy()
        known[order[:n]] = rare[:n]
        history.append((n, expected_average_precision(known)))
        later = np.searchsorted(trajectory.n_labels, n + 100)
        rise = forecast_rise(history, 100)
        if later < len(trajectory.n_labels) and rise is not None and n_found >= ENOUGH_FOUND:
            truth = trajectory.precision[later] - trajectory.precision[number]
            add("rise of average precision", rise, truth, 0.0)
        labels = np.bincount(trajectory.truth[order[:n]], minlength=len(counts))
        for k, count in enumerate(counts[:-1].tolist()):
            if labels[k] >= MIN_LABELS:
                said = Interval(*trajectory.counts[number, k])
                left = left_by_model(said, labels[k], len(order) - n)
                interval = Interval(left.value, left.low, left.high)
                add("left of a class, by the model", interval, count - labels[k], 0.0)


def main():
    warnings.simplefilter("ignore")
    if "blind" in sys.argv:
        return print_blind()
    pools = CHOSEN if "chosen" in sys.argv else JUDGED
    for goal in [goal for goal in GOALS if goal in sys.argv] or GOALS:
        print(f"{goal}:\n")
        print_rules(pools, goal)
    for goal in GOALS:
        print(f"Forecasts, {goal}:\n")
        print_forecasts(pools, (goal,))


if __name__ == "__main__":
    main()
