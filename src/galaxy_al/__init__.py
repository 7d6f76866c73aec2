"""galaxy-al: find and label the rare classes of a large pool with as few labels as possible."""

from galaxy_al.data.paper import load_setting
from galaxy_al.errors import GalaxyError, PoolExhausted
from galaxy_al.learner import Learner
from galaxy_al.metrics import balanced_accuracy
from galaxy_al.simulation import simulate
from galaxy_al.snapshot import UNLABELED, Snapshot
from galaxy_al.strategies import STRATEGIES, Session, Strategy
from galaxy_al.strategies.galaxy import Galaxy
from galaxy_al.version import __version__

__all__ = [
    "STRATEGIES",
    "UNLABELED",
    "Galaxy",
    "GalaxyError",
    "Learner",
    "PoolExhausted",
    "Session",
    "Snapshot",
    "Strategy",
    "__version__",
    "balanced_accuracy",
    "load_setting",
    "simulate",
]
