"""What a model learns from three people of different reliability, of whom some see the same.

Run:  GALAXY_AL_DATA=FOLDER .venv/bin/python benchmarks/agreement.py [POOL ...]
(some minutes per pool)

A strategy chooses 300 examples of one half of a pool. One of three people labels each, at random,
and 20% are labelled by another one also, or by both. Prints the table of
docs/appendix/agreement.md: the average precision of the rare classes in the other half of the pool
when the model is trained on

- truth: the true classes, as if no person made mistakes;
- last answer: the second label overwrites the first, as before version 5 of the settings;
- majority: the label of most people, the first one of equals;
- consensus: the most probable label by Dawid and Skene, every label counting fully;
- weighted: the same, those on which people disagree counting by their probability;
- all weighted: the same, and labels of one person also, by how reliable that person is.
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np

from galaxy_al.agreement.dawid_skene import dawid_skene
from galaxy_al.agreement.votes import Votes
from galaxy_al.labelling.consensus import find_consensus
from galaxy_al.metrics import rare_average_precision
from galaxy_al.models.auto import AutoTrainer
from pools import label_order, load

RIGHT = (0.95, 0.8, 0.6)  # on rare classes; on the majority class a fifth of the mistakes
COUNT, OVERLAP, SEEDS = 300, 0.2, 8
POOLS = ("dino-2", "banking77-3")


def confusion_of(right, n_classes):
    """How often a person takes each class for each."""
    table = np.full((n_classes, n_classes), (1 - right) / (n_classes - 1))
    np.fill_diagonal(table, right)
    table[-1] = (1 - right) / 5 / (n_classes - 1)
    table[-1, -1] = 1 - (1 - right) / 5
    return table


def answer(truth, order, n_people, rng):
    """The labels of each example by person, in the order in which they were given."""
    n_classes = int(truth.max()) + 1
    confusions = [confusion_of(right, n_classes) for right in RIGHT]
    answers = {}
    for index in order:
        count = n_people if rng.random() < OVERLAP else 1
        people = rng.permutation(len(RIGHT))[:count]
        answers[index] = {
            str(who): str(rng.choice(n_classes, p=confusions[who][truth[index]])) for who in people
        }
    return answers


def posterior_of_single(answers, shared, n_classes):
    """How probable the label of a person is of whom others have labelled some examples."""
    people, names = [str(who) for who in range(len(RIGHT))], [str(k) for k in range(n_classes)]
    model = dawid_skene(Votes.of(list(shared.values()), people, names))
    joint = model.class_priors[None, :, None] * model.confusion
    joint /= joint.sum(axis=1, keepdims=True)
    return {
        index: joint[int(who), int(name), int(name)]
        for index, given in answers.items()
        if len(given) == 1
        for who, name in given.items()
    }


def labels_of(answers, n_classes):
    """Labels and weights by the name of the method."""
    shared = {index: given for index, given in answers.items() if len(given) > 1}
    consensus = find_consensus(shared)
    agreed = {
        index: int(consensus[index].label if index in shared else next(iter(given.values())))
        for index, given in answers.items()
    }
    disputed = {i: consensus[i].probability for i in shared if len({*shared[i].values()}) > 1}
    singles = posterior_of_single(answers, shared, n_classes)
    return {
        "last answer": ({i: int(list(given.values())[-1]) for i, given in answers.items()}, {}),
        "majority": (
            {i: int(Counter(given.values()).most_common(1)[0][0]) for i, given in answers.items()},
            {},
        ),
        "consensus": (agreed, {}),
        "weighted": (agreed, disputed),
        "all weighted": (agreed, {**singles, **disputed}),
    }


class Judge:
    """Trains on labels of one half of a pool, and tells how well the other half is ranked."""

    def __init__(self, vectors, truth, others, other_truth):
        self.vectors, self.others, self.other_truth = vectors, others, other_truth
        self.n_classes = int(truth.max()) + 1
        self.trainer = AutoTrainer(n_classes=self.n_classes)

    def __call__(self, labels, weights):
        proba = self.trainer.fit_weighted(self.vectors, labels, weights).proba(self.others)
        return rare_average_precision(self.other_truth, proba, self.n_classes - 1)


def main(names):
    print(
        "| pool | people | truth | last answer | majority | consensus | weighted | all weighted |"
    )
    for name in names:
        vectors, truth = load(name)
        mixed = np.random.default_rng(0).permutation(len(truth))
        half, others = mixed[::2], mixed[1::2]
        judge = Judge(vectors[half], truth[half], vectors[others], truth[others])
        vectors, truth = vectors[half], truth[half]
        order = label_order(vectors, truth, "fair-cuts", COUNT)
        ceiling = judge({i: int(truth[i]) for i in order}, {})
        for n_people in (2, 3):
            found = {}
            for seed in range(SEEDS):
                answers = answer(truth, order, n_people, np.random.default_rng(seed))
                for method, (labels, weights) in labels_of(answers, judge.n_classes).items():
                    found.setdefault(method, []).append(judge(labels, weights))
            base = np.array(found["last answer"])
            cells = [f"{base.mean():.3f}"]
            for method in list(found)[1:]:
                gain = np.array(found[method]) - base
                error = gain.std(ddof=1) / len(gain) ** 0.5
                cells.append(f"{np.mean(found[method]):.3f} ({gain.mean():+.3f} ± {error:.3f})")
            print(f"| {name} | {n_people} | {ceiling:.3f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or POOLS)
