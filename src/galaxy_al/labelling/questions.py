"""Which annotator gets which example: leases, and the announcements that must be kept."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from galaxy_al.errors import PoolExhausted
from galaxy_al.labelling.announcements import After, Announcements, Answer
from galaxy_al.labelling.auditor import Auditor
from galaxy_al.labelling.leases import Leases
from galaxy_al.labelling.overlap import Overlap
from galaxy_al.learner import Learner


class Questions:
    """Hands out the examples that a learner asks. Examples are indices of the pool.

    What an annotator holds is pending in the learner's state, unless it has a label and they are
    asked for another answer. The oldest lease of an annotator is their question, the others are set
    aside for later.

    Parameters
    ----------
    auditor
        It is asked first.
    overlap
        Which examples wait for whose answer; these are asked among those of the strategy.
    lease_seconds
        How long an example is reserved for an annotator who sends nothing.
    """

    def __init__(
        self,
        learner: Learner,
        auditor: Auditor,
        overlap: Overlap,
        lease_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        self._learner, self._auditor, self._overlap = learner, auditor, overlap
        self._leases = Leases(lease_seconds, clock)
        self._announcements = Announcements()

    def next(self, annotator: str) -> int:
        """The question of an annotator: the one they hold, or a new one."""
        held = self._leases.held_by(annotator)
        # The strategy is asked even if another example was promised: usually they are equal, and
        # the strategy must know that its question was used.
        index = held[0] if held else self._lease_next(annotator, n_ahead=0)
        promised = self._announcements.collect(annotator)
        if promised is None or not self.is_free_for(promised, annotator):
            return index
        self.lease_only(promised, annotator)
        return promised

    def announce(self, annotator: str) -> After:
        """Announce what follows each answer to the question that an annotator holds."""
        question, *set_aside = self._leases.held_by(annotator)
        is_alone = self._leases.holders() == {annotator}
        is_strategys = question in self._learner.state.pending
        is_next_also = not self._overlap.is_turn(annotator, n_ahead=1)
        after: After = {}
        is_strategys = is_strategys and not self._auditor.is_asking
        if is_alone and not set_aside and is_strategys and is_next_also:
            after = self._learner.look_ahead(question)
        else:
            # What the others will answer is not known, and an audit does not wait for the answer:
            # one example is set aside for any answer.
            with suppress(PoolExhausted):
                then = set_aside[0] if set_aside else self._lease_next(annotator, n_ahead=1)
                after = dict.fromkeys([*range(self._learner.n_classes), None], then)
        self._announcements.announce(annotator, question, after)
        return after

    def answer(self, annotator: str, index: int, answer: Answer) -> None:
        """An annotator has answered an example: they hold it no longer."""
        self._leases.end(index)
        self._announcements.answer(annotator, index, answer)

    def holder(self, index: int) -> str | None:
        """Who holds an example."""
        return self._leases.holder(index)

    def is_second_opinion(self, index: int) -> bool:
        """Whether an example has an answer and its holder is asked all the same."""
        return self.holder(index) is not None and index not in self._learner.state.pending

    def keep(self, index: int) -> None:
        """Do not ask others an example that has lost its answer while it has a holder."""
        if self.holder(index) is not None and self._learner.state.is_free(index):
            self._learner.state.hold(index)

    def is_free_for(self, index: int, annotator: str) -> bool:
        """Whether an annotator may hold an example."""
        state = self._learner.state
        is_answered = index in state.labels or index in state.skipped
        may_ask = not is_answered or self._overlap.is_wanted(self._overlap.id(index), annotator)
        return may_ask and self.holder(index) in (None, annotator)

    def lease_only(self, index: int, annotator: str) -> None:
        """Let an annotator hold one example and no other."""
        held = self._leases.held_by(annotator)
        for other in held:
            if other != index:
                self._give_back(other)
        if index not in held:
            if self._learner.state.is_free(index):
                self._learner.state.hold(index)
            self._leases.give(index, annotator)

    def give_all_back(self, annotator: str) -> None:
        """Let an annotator hold nothing, and forget what was announced to them."""
        self._announcements.drop(annotator)
        for index in self._leases.held_by(annotator):
            self._give_back(index)

    def renew(self, annotator: str) -> None:
        """Restart the time of an annotator's leases, and end all leases whose time is over."""
        self._leases.renew(annotator)
        for index, holder in self._leases.end_expired().items():
            self._announcements.drop(holder, index)
            self._release(index)

    def _lease_next(self, annotator: str, n_ahead: int) -> int:
        """Lease a draw of the audit, what waits for the annotator, or what the strategy asks.

        What waits is asked if it is its turn, or if the strategy has nothing left to ask.
        """
        draw = self._auditor.next(self._learner.state.is_free)
        if draw is not None:
            self._learner.state.hold(draw)
            self._leases.give(draw, annotator)
            return draw
        waiting = (
            self._waiting_for(annotator) if self._overlap.is_turn(annotator, n_ahead) else None
        )
        if waiting is None:
            try:
                return self._lease_asked(annotator)
            except PoolExhausted:
                waiting = self._waiting_for(annotator)
                if waiting is None:
                    raise
        self._leases.give(waiting, annotator)
        return waiting

    def _waiting_for(self, annotator: str) -> int | None:
        """An example that waits for an annotator and that no annotator holds."""
        for example in self._overlap.wanted(annotator):
            index = self._overlap.usable_index(example)
            if index is not None and self.holder(index) is None:
                return index
        return None

    def _lease_asked(self, annotator: str) -> int:
        """Lease what the strategy asks, but set aside what was announced to another annotator."""
        while True:
            index = self._learner.ask()
            holder = self._announcements.annotator_of(index) or annotator
            self._leases.give(index, holder)
            if holder == annotator:
                return index

    def _give_back(self, index: int) -> None:
        holder = self._leases.end(index)
        if holder is not None:
            self._announcements.drop(holder, index)
        self._release(index)

    def _release(self, index: int) -> None:
        if index in self._learner.state.pending:
            self._learner.state.release(index)
