"""Lets a learner know what the log says, and asks again what was only skipped."""

from __future__ import annotations

from collections.abc import Iterable

from galaxy_al.labelling.log import Log
from galaxy_al.labelling.project import Project
from galaxy_al.learner import Learner


class Applying:
    """Keeps the label state of a learner in agreement with the log.

    A skip lasts until a training that ends skips; until then it counts as an answer.

    Parameters
    ----------
    since
        The round in which skips count from the beginning.

    Attributes
    ----------
    skipped
        The examples that are skipped until then.
    """

    def __init__(self, project: Project, log: Log, learner: Learner, since: int) -> None:
        self._project, self._log, self._learner = project, log, learner
        self._class_index = {name: index for index, name in enumerate(project.classes)}
        self.skipped: set[int] = set()
        self.since = since
        self._n_at_first_skip = learner.state.n_answers

    def apply(self, index: int) -> None:
        """Let the label state agree with the log about an example."""
        current = self._log.current_in_round(self._project.pool.ids[index], self.since)
        kind = None if current is None else current.kind
        label = None if current is None else self._class_index.get(current.label or "")
        state = self._learner.state
        if label is not None:
            if state.labels.get(index) != label:
                self._learner.tell(index, label)
        elif kind in ("skip", "cannot tell"):
            if index not in state.skipped:
                state.skip(index)
        elif index in state.labels:
            state.withdraw(index)
        elif index in state.skipped:
            state.restore(index)
        if kind == "skip":
            if not self.skipped:
                self._n_at_first_skip = state.n_answers
            self.skipped.add(index)
        else:
            self.skipped.discard(index)

    def apply_consensus(self) -> None:
        """Do so for all examples on which people disagree."""
        for index in self._project.usable_indices(self._log.disputed()).values():
            self.apply(index)

    def cannot_tell(self) -> frozenset[int]:
        """The examples that an annotator could not label."""
        return frozenset(self._learner.state.skipped - self.skipped - self._project.bad.keys())

    def ending_skips(self) -> frozenset[int] | None:
        """The skipped examples, if a training now lets them be asked again."""
        n_since = self._learner.state.n_answers - self._n_at_first_skip
        is_over = not self._learner.goal.is_eager or n_since >= self._learner.batch_size
        return frozenset(self.skipped) if is_over else None

    def end_skips(self, again: Iterable[int], round: int) -> int:
        """Let examples be asked again unless an answer came; returns how many answers that adds."""
        self.since = round
        before = self._learner.state.n_answers
        for index in again:
            self.apply(index)
        return self._learner.state.n_answers - before
