"""The exceptions of galaxy-al.

::

    Exception
    ├── ValueError          an argument is wrong: what it is, what it got, what is allowed
    └── GalaxyError         anything else that galaxy-al reports
        ├── PoolExhausted   nothing is left to ask
        ├── UnreadableImage a file cannot be opened as an image
        └── Taken           somebody else has the example, or has answered it
"""


class GalaxyError(Exception):
    """Base class of the errors that are not a wrong argument."""


def one_line(error: BaseException) -> str:
    """What an error says, without line breaks; its kind, if it says nothing."""
    return " ".join(str(error).split()) or type(error).__name__


class PoolExhausted(GalaxyError):  # noqa: N818 - reads as what happened
    """Every example of the pool is labelled, skipped or being answered."""


class UnreadableImage(GalaxyError):  # noqa: N818 - reads as what happened
    """A file cannot be opened as an image."""


class Taken(GalaxyError):  # noqa: N818 - reads as what happened
    """Somebody else is looking at the example, or has answered it."""
