"""Where downloads and caches are stored."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path


def home_folder() -> Path:
    """The folder that ``GALAXY_AL_HOME`` names; by default one in the user's cache."""
    home = os.environ.get("GALAXY_AL_HOME")
    return Path(home).expanduser() if home else user_cache_path("galaxy-al", appauthor=False)
