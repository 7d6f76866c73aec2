"""Schema versions of SQLite files: older files are migrated, newer files are refused."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from galaxy_al.errors import GalaxyError

Step = Sequence[str] | Callable[[sqlite3.Connection], object]


def schema_version(db: sqlite3.Connection) -> int:
    """How many steps the file has behind it; 0 for a new file."""
    return int(db.execute("pragma user_version").fetchone()[0])


def migrate(db: sqlite3.Connection, steps: Sequence[Step], path: Path) -> None:
    """Bring a database to version ``len(steps)``; either all steps take effect or none does.

    Parameters
    ----------
    steps
        Each a list of SQL statements, or a function of the connection. Step ``i`` leads
        from version ``i`` to version ``i + 1``; a new file takes all of them.

    Examples
    --------
    >>> db = sqlite3.connect(":memory:")
    >>> migrate(db, [["create table a (x)"], ["alter table a add y"]], Path("a.sqlite"))
    >>> schema_version(db)
    2
    >>> migrate(db, [["create table a (x)"]], Path("a.sqlite"))
    Traceback (most recent call last):
    galaxy_al.errors.GalaxyError: a.sqlite was written by a newer galaxy-al (its format is 2, \
this one reads up to 1). Upgrade galaxy-al to open it.
    """
    refuse_newer(db, len(steps), path)
    if schema_version(db) == len(steps):
        return
    db.execute("begin immediate")
    try:
        refuse_newer(db, len(steps), path)  # another process may have migrated it meanwhile
        for step in steps[schema_version(db) :]:
            if callable(step):
                step(db)
            else:
                for statement in step:
                    db.execute(statement)
        db.execute(f"pragma user_version = {len(steps)}")
        db.execute("commit")
    except BaseException:
        db.execute("rollback")
        raise


def refuse_newer(db: sqlite3.Connection, newest: int, path: Path) -> None:
    """Refuse a file of a later version than ``newest``."""
    found = schema_version(db)
    if found > newest:
        raise GalaxyError(
            f"{path} was written by a newer galaxy-al (its format is {found}, this one reads "
            f"up to {newest}). Upgrade galaxy-al to open it."
        )
