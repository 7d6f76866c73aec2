"""Where downloads and caches are kept."""

from __future__ import annotations

import os
from pathlib import Path


def home_folder() -> Path:
    """The folder that ``GALAXY_AL_HOME`` names, or one in the user's cache."""
    home = os.environ.get("GALAXY_AL_HOME")
    return Path(home).expanduser() if home else Path.home() / ".cache" / "galaxy-al"
