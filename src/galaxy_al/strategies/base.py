"""Strategy: decides what to ask. The method called BASE is in `balanced_selection.py`."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import InvalidArgument
from galaxy_al.snapshot import Snapshot, View
from galaxy_al.strategies.label_state import LabelState
from galaxy_al.strategies.scoring import check_count
from galaxy_al.strategies.session import RankedSession, Session, Start


class Strategy:
    """Decides what to ask. It never sees the truth: its session asks, and the caller answers.

    A strategy that picks a whole batch at once implements only `rank`. One that needs answers
    within the batch overrides `open_session` and says so in `needs_answers`.

    Attributes
    ----------
    needs
        What it cannot do without beside the scores: ``"embeddings"``, ``"head"``.
    is_random
        Whether every question is a uniform random choice.
    works_on_shards
        Whether it can ask about a pool whose rows lie in shards: whether it does with a few of
        them at a time.
    explorer
        What asks for it in a `Learner` until two classes are known; None asks at random.
    view
        Which probabilities it asks by: those as if all classes were as frequent, or those in the
        pool. By default the ones that serve it best; `make_strategy` lets you choose.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[str]
    needs: tuple[str, ...] = ()
    needs_answers: ClassVar[Literal["no", "each", "in groups"]] = "no"
    is_random: bool = False
    works_on_shards: ClassVar[bool] = False
    explorer: Strategy | None = None
    view: View = "balanced"

    def start(
        self,
        snapshot: Snapshot,
        *,
        rng: np.random.Generator,
        budget: int = 100,
        state: LabelState | None = None,
    ) -> Session:
        """Start to ask about a snapshot.

        Parameters
        ----------
        snapshot
            What is known now.
        rng
            The source of every random choice: the same seed asks the same questions.
        budget
            How many examples will be asked, for strategies that pick a batch as a whole.
            You may ask for more.
        state
            Share this state instead of the snapshot's labels. Its owner then tells the session
            what changes.
        """
        self.check(snapshot)
        if not isinstance(rng, np.random.Generator):
            raise InvalidArgument(f"rng must be a numpy.random.Generator, got {rng!r}.")
        check_count("budget", budget)
        snapshot = snapshot.in_view(self.view)
        if state is not None:
            return self.open_session(Start(snapshot, state, rng, budget))
        state = LabelState.from_snapshot(snapshot)
        session = self.open_session(Start(snapshot, state, rng, budget))
        state.listen(session)
        return session

    def check(self, snapshot: Snapshot) -> None:
        """Refuse a snapshot that lacks what the strategy needs, or lies in shards."""
        if snapshot.is_sharded and not self.works_on_shards:
            raise InvalidArgument(
                f"Strategy {self.name!r} needs the whole pool at once, and this one is in shards. "
                f"Choose from: {', '.join(_names_on_shards(Strategy))}."
            )
        for need in self.needs:
            if getattr(snapshot, need) is None:
                raise InvalidArgument(
                    f"Strategy {self.name!r} needs {need}, which the snapshot does not have: "
                    f"create it with Snapshot(proba, labels, {need}=...)."
                )

    def prepare(self, snapshot: Snapshot, *, rng: np.random.Generator) -> None:
        """Compute what is computed once per pool, before anything is trained, and keep it.

        If you have pretrained embeddings, call this with them. Otherwise the strategy prepares
        itself from its first snapshot.
        """

    def open_session(self, start: Start) -> Session:
        """The session that `start` returns; the arguments are checked."""
        return RankedSession(self, start)

    def rank(
        self, snapshot: Snapshot, budget: int, rng: np.random.Generator
    ) -> NDArray[np.integer[Any]]:
        """At most ``budget`` askable indices, the most wanted first."""
        raise NotImplementedError(f"{type(self).__name__} implements neither rank nor a session.")


def _names_on_shards(kind: type[Strategy]) -> list[str]:
    """The names of the strategies that can ask about a pool in shards."""
    own = [kind.name] if kind.works_on_shards else []
    return sorted(
        {*own, *(name for each in kind.__subclasses__() for name in _names_on_shards(each))}
    )
