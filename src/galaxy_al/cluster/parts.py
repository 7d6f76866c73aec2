"""Parts that are kept by the workers of a cluster.

What is made of a part is a task: if a worker is lost, the scheduler makes it again somewhere else.
Questions about the parts are many and small, and a task takes ten milliseconds to schedule. So each
worker has one actor that holds its parts and is asked directly. If an actor is lost with its
worker, another one takes its place as soon as the parts are there again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import reduce
from typing import Any

from distributed import Client, Future, KilledWorker, wait

from galaxy_al.cluster.connecting import lost_scheduler, naming_lost_scheduler
from galaxy_al.errors import GalaxyError, one_line
from galaxy_al.shards import Other, Part, Parts, Result
from galaxy_al.version import __version__

_ATTEMPTS = 10  # each time a worker can be lost


class ClusterParts(Parts[Part]):
    """Parts that are kept by the workers of a cluster.

    Parameters
    ----------
    parts
        What computes each part, or has.
    """

    def __init__(self, client: Client, parts: Sequence[Future]) -> None:
        self._client, self._parts = client, parts
        self._actors: list[tuple[list[int], Any]] = []

    @classmethod
    def of(cls, client: Client, items: Sequence[Part]) -> ClusterParts[Part]:
        """Parts that are spread over the workers; each says where to find what is large."""
        return cls(client, client.map(_keep, items, version=__version__, pure=False))

    def __len__(self) -> int:
        return len(self._parts)

    def __copy__(self) -> ClusterParts[Part]:
        return self

    def map(self, work: Callable[..., Other], *others: Parts[Any]) -> Parts[Other]:
        """As of `Parts`; returns before the work is done."""
        lists = [other._parts for other in others if isinstance(other, ClusterParts)]
        # A task of its own: it is sent once, and made again if it is lost.
        shared = self._client.submit(_keep, work, version=__version__, pure=False)
        everywhere = [shared] * len(self._parts)
        return ClusterParts(
            self._client, self._client.map(_run, everywhere, self._parts, *lists, pure=False)
        )

    def some(self, work: Callable[[Part, Any], Result], given: Mapping[int, Any]) -> list[Result]:
        """As of `Parts`."""
        if not given:
            return []
        found: dict[int, Result] = {}
        for answers in self._ask(lambda actor, own: actor.some(work, own), given):
            found.update(answers)
        return [found[number] for number in given]

    def reduce(
        self, work: Callable[[Part], Result], combine: Callable[[Result, Result], Result]
    ) -> Result:
        """As of `Parts`."""
        everything = dict.fromkeys(range(len(self)))
        answers: list[Result] = self._ask(
            lambda actor, own: actor.reduce(work, combine), everything
        )
        return reduce(combine, answers)

    def _ask(
        self, ask: Callable[[Any, dict[int, Any]], Any], given: Mapping[int, Any]
    ) -> list[Any]:
        """The answers of the actors of some parts, with what is given to each part."""
        for _ in range(_ATTEMPTS):
            self._wait()
            try:
                asked = []
                for numbers, actor in self._find_actors():
                    if own := {number: given[number] for number in numbers if number in given}:
                        asked.append(ask(actor, own))
                answers = [each.result() for each in asked]
            except _LOST:
                self._actors = []
                continue
            except CancelledError as error:
                raise lost_scheduler() from error
            for answer in answers:
                if isinstance(answer, _Failure):
                    raise answer.error
            return answers
        raise GalaxyError(f"The workers of the cluster were lost {_ATTEMPTS} times.")

    def _wait(self) -> None:
        """Return when all parts are made; raise what went wrong."""
        if not self._actors:
            with naming_lost_scheduler():
                wait(self._parts)
            check_done(self._parts)

    def _find_actors(self) -> list[tuple[list[int], Any]]:
        """The actors, and the numbers of the parts that each has."""
        if not self._actors:
            made = []
            for worker, numbers in self._where().items():
                own = [self._parts[number] for number in numbers]
                options = {"workers": [worker], "allow_other_workers": True, "pure": False}
                actor = self._client.submit(PartsOfWorker, numbers, own, actor=True, **options)
                made.append((numbers, actor))
            self._actors = [(numbers, actor.result()) for numbers, actor in made]
        return self._actors

    def _where(self) -> dict[str, list[int]]:
        """The numbers of the parts that each worker has."""
        places = self._client.who_has(self._parts)
        found: dict[str, list[int]] = {}
        for number, part in enumerate(self._parts):
            workers = sorted(places.get(part.key, ()))
            if not workers:
                raise OSError("A worker was lost just now.")
            found.setdefault(workers[0], []).append(number)
        return found


_LOST = (OSError, RuntimeError)  # what is raised when the worker of an actor is gone


@dataclass(frozen=True)
class _Failure:
    """An error of the work itself."""

    error: Exception


class PartsOfWorker:
    """The parts that one worker has, and what it is asked about them."""

    def __init__(self, numbers: list[int], parts: list[Any]) -> None:
        self._parts = dict(zip(numbers, parts))

    def some(self, work: Callable[[Any, Any], Any], given: dict[int, Any]) -> Any:
        """What the work finds in some parts."""
        try:
            return {number: work(self._parts[number], value) for number, value in given.items()}
        except Exception as error:
            return _Failure(error)

    def reduce(self, work: Callable[[Any], Any], combine: Callable[[Any, Any], Any]) -> Any:
        """What the work finds in all parts, combined."""
        try:
            return reduce(combine, map(work, self._parts.values()))
        except Exception as error:
            return _Failure(error)


def check_done(futures: Sequence[Future]) -> None:
    """Raise what went wrong in a task; one that was lost with its worker is done again."""
    for future in futures:
        if future.status == "error":
            error = future.exception()
            if isinstance(error, KilledWorker):
                raise GalaxyError(
                    f"A task was given up after it had lost its worker several times, perhaps for "
                    f"lack of memory: {one_line(error)}"
                ) from error
            if isinstance(error, OSError):
                raise GalaxyError(f"A worker could not do its work: {one_line(error)}") from error
            if isinstance(error, ModuleNotFoundError):
                raise GalaxyError(f"A worker cannot run galaxy-al: {one_line(error)}.") from error
            raise error
        if future.status == "cancelled":
            raise lost_scheduler()


def _keep(item: Any, version: str) -> Any:
    if version != __version__:
        raise GalaxyError(
            f"A worker has galaxy-al {__version__}, and you have {version}. "
            "Install the same version everywhere."
        )
    return item


def _run(work: Callable[..., Any], *parts: Any) -> Any:
    return work(*parts)
