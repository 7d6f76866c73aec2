"""People with known reliabilities who label examples of known classes."""

import numpy as np

from galaxy_al.agreement.votes import Votes


def reliable(right, n_classes):
    """The confusion of a person who is right so often, and wrong evenly."""
    table = np.full((n_classes, n_classes), (1 - right) / (n_classes - 1))
    np.fill_diagonal(table, right)
    return table


def simulate(rng, priors, confusions, n_examples, share=1.0):
    """Votes and the true classes; each person labels a share of the examples."""
    truth = rng.choice(len(priors), p=priors, size=n_examples)
    rows = []
    for person, confusion in enumerate(confusions):
        given = (confusion[truth].cumsum(axis=1) > rng.random((n_examples, 1))).argmax(axis=1)
        rows += [
            (i, person, given[i]) for i in range(n_examples) if share == 1 or rng.random() < share
        ]
    seen = sorted({row[0] for row in rows})
    number = {i: at for at, i in enumerate(seen)}
    table = np.array([(number[i], who, name) for i, who, name in rows]).T
    votes = Votes(*table, len(seen), len(confusions), len(priors))
    return votes, truth[seen]
