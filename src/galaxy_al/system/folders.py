"""Where downloads and caches are stored."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path


def home_folder() -> Path:
    """The folder that ``GALAXY_AL_HOME`` names; by default one in the user's cache."""
    home = os.environ.get("GALAXY_AL_HOME")
    return Path(home).expanduser() if home else user_cache_path("galaxy-al", appauthor=False)


def data_folder() -> Path | None:
    """The folder that ``GALAXY_AL_DATA`` names, with data you already have; None if it does not."""
    folder = os.environ.get("GALAXY_AL_DATA")
    return Path(folder).expanduser() if folder else None
