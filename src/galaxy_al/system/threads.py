"""How many threads to work with."""

from __future__ import annotations

import os


def n_threads() -> int:
    """As many as ``OMP_NUM_THREADS`` says, or one for each core."""
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(wanted) if wanted.isdecimal() and int(wanted) else os.cpu_count() or 1
