"""Logits, probabilities, and what lies between them: pure functions of tables, N x K."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.floating[Any]]

LOGIT_WITHOUT_LABELS = -300.0  # of a class that has none: its probability is as good as 0


def softmax(logits: Table, out: Table | None = None) -> Table:
    """Probabilities, in the precision of the logits; in place if ``out`` is the logits."""
    proba: Table = np.subtract(logits, logits.max(axis=1, keepdims=True), out=out)
    np.exp(proba, out=proba)
    proba /= proba.sum(axis=1, keepdims=True)
    return proba


def log_softmax(logits: Table) -> Table:
    """The logarithms of probabilities."""
    exact: Table = logits - logits.max(axis=1, keepdims=True)
    exact -= np.log(np.exp(exact).sum(axis=1, keepdims=True))
    return exact


def rare_log_odds(logits: Table) -> Table:
    """The log odds of the rare classes together against the majority class, the last one."""
    rare = logits[:, :-1]
    if rare.shape[1] == 1:
        return rare[:, 0] - logits[:, -1]
    top = rare.max(axis=1)
    total: Table = top + np.log(np.exp(rare - top[:, None]).sum(axis=1))
    return total - logits[:, -1]
