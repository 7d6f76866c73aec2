"""How many threads to use."""

from __future__ import annotations

import os


def n_threads() -> int:
    """The number in ``OMP_NUM_THREADS``; by default one per core."""
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(wanted) if wanted.isdecimal() and int(wanted) else os.cpu_count() or 1
