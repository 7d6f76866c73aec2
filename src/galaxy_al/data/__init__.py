"""From raw data to pools: the paper's settings, and whatever a user has."""

from galaxy_al.data.paper import SETTINGS, Setting, load_setting
from galaxy_al.data.pool import Pool, not_finite, unreadable, without_unreadable
from galaxy_al.data.sources import import_labels, load_pool

__all__ = [
    "SETTINGS",
    "Pool",
    "Setting",
    "import_labels",
    "load_pool",
    "load_setting",
    "not_finite",
    "unreadable",
    "without_unreadable",
]
