"""The exceptions of galaxy-al.

::

    Exception
    └── GalaxyError             anything that galaxy-al reports; shown as one line
        ├── InvalidArgument     an argument is wrong: what it is, what it got, what is allowed
        │   └── NotFound        no example or class has this name
        ├── PoolExhausted       nothing is left to ask
        ├── UnreadableImage     a file cannot be opened as an image
        ├── LostScheduler       the scheduler of a cluster is gone
        └── Taken               another annotator has the example, or has answered it

`InvalidArgument` is a `ValueError` too. Any other exception is a bug.
"""


class GalaxyError(Exception):
    """Base class of everything that galaxy-al reports to its users."""


def one_line(error: BaseException) -> str:
    """The message of an error without line breaks; its type if it has no message."""
    return " ".join(str(error).split()) or type(error).__name__


class InvalidArgument(GalaxyError, ValueError):  # noqa: N818 - reads as what happened
    """An argument is wrong. The message says what it is, what it got and what is allowed."""


class NotFound(InvalidArgument):
    """No example or class has this name."""


class PoolExhausted(GalaxyError):  # noqa: N818 - reads as what happened
    """Every example of the pool is labelled, skipped or being answered."""


class UnreadableImage(GalaxyError):  # noqa: N818 - reads as what happened
    """A file cannot be opened as an image."""


class LostScheduler(GalaxyError):  # noqa: N818 - reads as what happened
    """The scheduler of a cluster is gone, and what its workers had with it."""


class Taken(GalaxyError):  # noqa: N818 - reads as what happened
    """Another annotator is looking at the example, or has answered it."""
