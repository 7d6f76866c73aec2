"""From raw data to pools: the paper's settings, and whatever a user has."""

from galaxy_al.data.pool import Pool, UnreadableImage, unreadable
from galaxy_al.data.settings import SETTINGS, Setting, load_setting
from galaxy_al.data.sources import import_labels, load_pool

__all__ = [
    "SETTINGS",
    "Pool",
    "Setting",
    "UnreadableImage",
    "import_labels",
    "load_pool",
    "load_setting",
    "unreadable",
]
