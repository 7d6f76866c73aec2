"""Where downloads and caches are kept."""

from __future__ import annotations

import os
from pathlib import Path


def home_folder() -> Path:
    """The folder that ``GALAXY_AL_HOME`` names, or one in the user's cache."""
    from platformdirs import user_cache_path

    home = os.environ.get("GALAXY_AL_HOME")
    return Path(home).expanduser() if home else user_cache_path("galaxy-al", appauthor=False)
