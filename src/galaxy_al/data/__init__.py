"""From raw data to pools: the paper's settings, and pools of your own."""

from galaxy_al.data.modalities import MODALITIES, Modality
from galaxy_al.data.paper import SETTINGS, Setting, load_setting
from galaxy_al.data.pool import Pool
from galaxy_al.data.sources import import_labels, load_pool

__all__ = [
    "MODALITIES",
    "SETTINGS",
    "Modality",
    "Pool",
    "Setting",
    "import_labels",
    "load_pool",
    "load_setting",
]
