"""One method per file. The command line, suites and tests use the registry below."""

import inspect
from typing import Any

from galaxy_al.errors import InvalidArgument
from galaxy_al.snapshot import View, checked_view
from galaxy_al.strategies.badge import Badge
from galaxy_al.strategies.bait import Bait
from galaxy_al.strategies.balanced_selection import BalancedSelection
from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.cluster_margin import ClusterMargin
from galaxy_al.strategies.confidence import Confidence
from galaxy_al.strategies.coreset import Coreset
from galaxy_al.strategies.direct import Direct
from galaxy_al.strategies.discovery import Discovery
from galaxy_al.strategies.entropy import Entropy
from galaxy_al.strategies.fair_cuts import FairCuts
from galaxy_al.strategies.find_all import FindAll
from galaxy_al.strategies.galaxy import Galaxy
from galaxy_al.strategies.margin import Margin
from galaxy_al.strategies.most_likely_positive import MostLikelyPositive
from galaxy_al.strategies.outliers import Outliers
from galaxy_al.strategies.random import Random
from galaxy_al.strategies.s2 import S2
from galaxy_al.strategies.session import Session
from galaxy_al.strategies.similar import Similar
from galaxy_al.strategies.typiclust import TypiClust
from galaxy_al.system.registry import Registry

_BUILT_IN: tuple[type[Strategy], ...] = (
    FairCuts,
    Galaxy,
    Direct,
    S2,
    Random,
    Confidence,
    Margin,
    Entropy,
    MostLikelyPositive,
    FindAll,
    BalancedSelection,
    ClusterMargin,
    Similar,
    Badge,
    Bait,
    Coreset,
    TypiClust,
    Outliers,
    Discovery,
)

STRATEGIES: Registry[type[Strategy]] = Registry(
    "strategy", "galaxy_al.strategies", {strategy.name: strategy for strategy in _BUILT_IN}
)

# Never far behind the best where rare classes are concerned: docs/appendix/default.md.
DEFAULT_STRATEGY = FairCuts.name

__all__ = [
    "DEFAULT_STRATEGY",
    "S2",
    "STRATEGIES",
    "Badge",
    "Bait",
    "BalancedSelection",
    "ClusterMargin",
    "Confidence",
    "Coreset",
    "Direct",
    "Discovery",
    "Entropy",
    "FairCuts",
    "FindAll",
    "Galaxy",
    "Margin",
    "MostLikelyPositive",
    "Outliers",
    "Random",
    "Session",
    "Similar",
    "Strategy",
    "TypiClust",
    "make_strategy",
]


def make_strategy(name: str, *, view: View | None = None, **options: Any) -> Strategy:
    """The strategy of this name, with its defaults where you give no option.

    Parameters
    ----------
    view
        Which probabilities it asks by, ``"balanced"`` or ``"pool"``, instead of its own choice.

    Examples
    --------
    >>> make_strategy("galaxy", across="rotate").across
    'rotate'
    >>> make_strategy("margin", view="balanced").view
    'balanced'
    """
    strategy = STRATEGIES[name]
    allowed = inspect.signature(strategy).parameters
    for option in options:
        if option not in allowed:
            known = ", ".join([*allowed, "view"])
            raise InvalidArgument(f"Strategy {name!r} has no option {option!r}. Options: {known}.")
    made = strategy(**options)
    if view is not None:
        made.view = checked_view(view)
    return made
