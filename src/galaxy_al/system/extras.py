"""Libraries that not every installation has."""

from collections.abc import Iterator
from contextlib import contextmanager

from galaxy_al.errors import GalaxyError


@contextmanager
def needs_extra(what: str, extra: str) -> Iterator[None]:
    """Say what to install if an import fails."""
    try:
        yield
    except ImportError as error:
        wanted = error.name or error
        raise GalaxyError(f"{what} needs {wanted}: pip install 'galaxy-al[{extra}]'.") from error
