"""What is known about classes that have no label yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from galaxy_al.labelling.log import Entry
from galaxy_al.strategies import FairCuts, FindAll, Strategy
from galaxy_al.strategies.discovery import search_share

_DOUBT = 0.05
_FEWEST = 30  # random labels before anything is said


def missing_classes(
    classes: Sequence[str], entries: Iterable[Entry], strategy: Strategy, batch_size: int
) -> dict[str, str]:
    """For each rare class without a label, how frequent it can be and how much looks for it.

    Nothing is said before there are 30 random labels.

    Parameters
    ----------
    classes
        The majority class last.
    entries
        The current entry of each example.
    strategy
        What asks; it may look for missing classes.
    batch_size
        As of the project.

    Examples
    --------
    >>> from galaxy_al.strategies import FairCuts
    >>> entries = [Entry("ann", "label", str(i), "fine", is_random=True) for i in range(149)]
    >>> print(missing_classes(["dent", "fine"], entries, FairCuts(), batch_size=25)["dent"])
    None in 149 random labels: at most 2.0% of the pool (95% sure). 1 question in 4 looks for it.
    """
    labels = [entry for entry in entries if entry.kind == "label" and entry.label in classes]
    n_random = sum(entry.is_random for entry in labels)
    missing = [name for name in classes[:-1] if name not in {entry.label for entry in labels}]
    if n_random < _FEWEST or not missing:
        return {}
    text = (
        f"None in {n_random:,} random labels: at most {largest_share(n_random):.1%} of the pool "
        f"(95% sure).{_search(n_random, len(missing), strategy, batch_size)}"
    )
    return dict.fromkeys(missing, text)


def _search(n_random: int, n_missing: int, strategy: Strategy, batch_size: int) -> str:
    if not isinstance(strategy, FairCuts | FindAll) or not strategy.discover:
        return ""
    one_in = round(1 / search_share(n_random, n_missing, strategy.n_ahead(batch_size)))
    how_many = f"1 question in {one_in:,} looks" if one_in > 1 else "Almost every question looks"
    for_what = "it" if n_missing == 1 else f"the {n_missing} missing classes"
    return f" {how_many} for {for_what}."


def largest_share(n_random: int) -> float:
    """The largest share of a class that random labels without it leave possible, 95% sure.

    It is the upper end of a one-sided interval by Clopper and Pearson.
    """
    return float(1 - _DOUBT ** (1 / n_random))
