"""In which order ASReview's default model would have asked: run by ASReview's own interpreter.

`find_all.py` starts it. It reads one JSON object with `texts`, `relevant` (0 or 1 each), `starts`
(lists of indices that are known before) and `recall`. It writes one list of indices per start: what
was asked until that recall was reached.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
from asreview import ActiveLearningCycle, Simulate
from asreview.models.models import get_ai_config


class Recall:
    """Stop when enough is found. The order of what was asked before does not depend on it."""

    def __init__(self, enough):
        self.enough = enough

    def stop(self, results, _):
        return results["label"].sum() >= self.enough


def asked(features, relevant, start, recall):
    np.random.seed(0)  # noqa: NPY002 - as the command `asreview simulate` does
    cycle = ActiveLearningCycle.from_meta(get_ai_config()["value"])
    enough = int(np.ceil(recall * relevant.sum()))
    run = Simulate(
        features, relevant, cycle, Recall(enough), skip_transform=True, print_progress=False
    )
    run.label(start)
    run.review()
    return run._results["record_id"].tolist()[len(start) :]


def main():
    task = json.load(sys.stdin)
    texts = pd.DataFrame({"title": "", "abstract": task["texts"]})
    relevant = np.array(task["relevant"])
    features = ActiveLearningCycle.from_meta(get_ai_config()["value"]).transform(texts)
    orders = [asked(features, relevant, start, task["recall"]) for start in task["starts"]]
    json.dump(orders, sys.stdout)


if __name__ == "__main__":
    main()
