"""What is known about a trained model: for its card, its README and the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.models.decisions import Decision, Rule
from galaxy_al.models.estimates import Estimate

ONNX = "model.onnx"
_EXAMPLES = {"images": "new-images", "texts": "new-texts.csv", "embeddings": "new-vectors.npy"}
_WANTS = {
    "f1": "the best F1",
    "balanced": "the best balanced accuracy",
    "precision": "a precision of at least {:g}",
    "recall": "a recall of at least {:g}",
    "cost": "the least cost, if a missed example costs {:g} times as much as a false alarm",
}


@dataclass(frozen=True)
class ModelReport:
    """How a model decides, and how good that is expected to be.

    Parameters
    ----------
    counts
        The labels of each class.
    class_priors
        How frequent each class is in the pool, by the model.
    estimate
        None for heads other than ``auto``.
    """

    classes: tuple[str, ...]
    counts: tuple[int, ...]
    n_examples: int
    class_priors: NDArray[np.float64]
    decision: Decision
    estimate: Estimate | None

    def card(self) -> dict[str, Any]:
        """The entries of the model's card."""
        entries: dict[str, Any] = {
            "labels": dict(zip(self.classes, self.counts)),
            "pool": {"size": self.n_examples, "class_priors": self.class_priors.tolist()},
            "decision": {"rule": self.decision.rule, "thresholds": list(self.decision.thresholds)},
        }
        if self.estimate is not None:
            measures = {
                name: None
                if not count
                else {
                    measure: {
                        "value": round(i.value, 4),
                        "interval": [round(i.low, 4), round(i.high, 4)],
                    }
                    for measure, i in vars(found).items()
                }
                for name, count, found in zip(self.classes, self.counts, self.estimate.classes)
            }
            confusion = self.estimate.confusion.round(1).tolist()
            entries["estimates"] = {"classes": measures, "confusion": confusion}
        return entries

    def lines(self) -> list[str]:
        """The tables for a terminal."""
        rule = Rule.parse(self.decision.rule)
        lines = [f"Decides for {_WANTS[rule.name].format(rule.value)}."]
        if self.estimate is None:
            return [
                *lines,
                "How good that is can only be estimated for the head auto.",
                "The probabilities are those among the labels, not in the pool.",
            ]
        lines += ["Expected on data like the pool, with approximate 95% intervals:", ""]
        header = ["class", "threshold", "precision", "recall", "F1", "in the pool"]
        rows = [header, *(self._row(k) for k in range(len(self.classes)))]
        heading = "Expected decisions on a pool like this one (a row per true class):"
        lines += [*_aligned(rows), *self._warnings(), "", heading, ""]
        confusion = [
            [name, *(f"{count:,.0f}" for count in row)]
            for name, row in zip(self.classes, self.estimate.confusion)
        ]
        return lines + _aligned([["", *self.classes], *confusion])

    def _warnings(self) -> list[str]:
        missing = [name for name, count in zip(self.classes, self.counts) if not count]
        if not missing:
            return []
        return ["", f"Never decided, for lack of labels: {', '.join(missing)}."]

    def _row(self, k: int) -> list[str]:
        assert self.estimate is not None
        if not self.counts[k]:
            return [self.classes[k], "no labels", *["unknown"] * 4]
        found, threshold = self.estimate.classes[k], self.decision.thresholds[k]
        count = f"{found.count.value:,.0f} ({found.count.low:,.0f} to {found.count.high:,.0f})"
        is_rest = k == len(self.classes) - 1 and not threshold
        limit = "the rest" if is_rest else f"{threshold:.3g}"
        measures = (found.precision, found.recall, found.f1)
        return [self.classes[k], limit, *map(str, measures), count]

    def readme(self, kind: str) -> str:
        """A README for the model's folder."""
        options = "" if kind in ("images", "embeddings") else f', kind="{kind}"'
        table = "\n".join(f"    {line}".rstrip() for line in self.lines())
        new_data = _EXAMPLES.get(kind, "new-data")
        names = ", ".join(f"`{name}`" for name in self.classes)
        return f"""# A classifier trained by galaxy-al

It takes {kind} and knows the classes {names}; the last one is the majority class.
It was trained on {sum(self.counts):,} labels from a pool of {self.n_examples:,} examples.

{table}

The probabilities are those in the pool that the model was trained with. If a class is rarer or more
frequent in your data, say so with `--prevalence`.

## Use it

On the command line:

    galaxy-al predict model {new_data} --output predictions.csv

In Python, where `model` is this folder:

```python
from galaxy_al.data import load_pool
from galaxy_al.labelling.predictions import predict
from galaxy_al.models.saving import load_model

found = predict(load_model("model"), load_pool("{new_data}"{options}))
for id, name, proba in zip(found.ids, found.decided, found.proba):
    print(id, name, proba)
```

`card.json` has all figures. `precision-recall.png` shows what other thresholds would give, if the
probabilities are right. `{ONNX}`, if you asked for it with `--onnx`, gives the probabilities of the
classes in the order above, and the index of the class that is decided.
"""


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows
    ]
