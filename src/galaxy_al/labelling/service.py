"""Where annotators get examples and hand in labels, while the model is trained beside them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from galaxy_al.errors import GalaxyError, PoolExhausted, Taken, one_line
from galaxy_al.labelling.database import RoundRecord
from galaxy_al.labelling.exploring import RememberedTypiClust
from galaxy_al.labelling.leases import Leases
from galaxy_al.labelling.log import Entry, Kind, Log, Source
from galaxy_al.labelling.model import class_indices, evaluate_round, labels_of
from galaxy_al.labelling.project import IMPORTER, Project, open_log
from galaxy_al.learner import Learner, NextRound
from galaxy_al.strategies import Session
from galaxy_al.strategies.label_state import LabelState
from galaxy_al.system.threads import n_threads

LEASE_SECONDS = 120.0
EXPLORER_FILE = "first-questions.json"


@dataclass(frozen=True)
class Training:
    """What the model is doing.

    Parameters
    ----------
    problem
        Why the last training failed; empty if it did not.
    """

    is_running: bool = False
    seconds: float = 0.0
    problem: str = ""


class Service:
    """The one place that changes a project; any number of threads may come to it.

    Every label is on disk before it counts. Training runs in a thread of its own, after every
    ``batch_size`` labels and as soon as a second class is known.

    Parameters
    ----------
    lease_seconds
        How long an example is somebody's who is not heard of.
    on_change
        Is called, from any thread, whenever something has changed.
    """

    def __init__(
        self,
        project: Project,
        *,
        lease_seconds: float = LEASE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.project = project
        self.lock = threading.RLock()
        self.on_change = on_change
        self._database = open_log(project.folder)
        entries = list(self._database.entries())
        self.log = Log(entries)
        self.rounds = self._database.rounds()
        self.training = Training(seconds=self.rounds[-1].seconds if self.rounds else 0.0)
        self.leases = Leases(lease_seconds, clock)
        self.seen: dict[str, float] = {}
        self.now = clock
        self._skipped_this_round: set[int] = set()  # skipped until the next round
        self._promised: dict[str, int | None] = {}
        self._code = {name: code for code, name in enumerate(project.classes)}
        self.learner = self._resumed(entries)
        _warm_up(self.learner)
        self._n_trained = self._n_answered
        self._thread: threading.Thread | None = None

    def close(self) -> None:
        """Wait for a training that runs, and let go of the project."""
        self.wait()
        self._database.close()

    @property
    def round(self) -> int:
        """How many trainings there were."""
        return self.rounds[-1].number if self.rounds else 0

    @property
    def n_new(self) -> int:
        """How many answers there were since the last training."""
        return self._n_answered - self._n_trained

    @property
    def _n_answered(self) -> int:
        return self.learner.state.n_answers

    def next(self, annotator: str) -> int:
        """An example for an annotator: the one that is theirs already, or another."""
        with self.lock:
            self._heartbeat(annotator)
            held = self.leases.held_by(annotator) or [self._lease_next(annotator)]
            promised = self._promised.pop(annotator, None)
            if promised in (None, held[0]) or not self._is_free_for(promised, annotator):
                return held[0]
            return self._reassign(held, promised, annotator)

    def look_ahead(self, annotator: str) -> dict[int | None, int | None]:
        """What the annotator gets next, by the answer to what they have; None is a skip.

        While nobody else is looking at anything it is what the strategy would ask. Otherwise that
        cannot be known, and an example is set aside for the annotator. Since a page shows it
        before we hear of the answer, it stands even if the strategy then knows better.
        """
        with self.lock:
            held = self.leases.held_by(annotator)
            if not held:
                return {}
            if len(held) == 1 and self.leases.is_alone(annotator):
                after = self.learner.look_ahead(held[0])
                self.leases.announce(held[0], after)
                return after
            try:
                then = held[1] if len(held) > 1 else self._lease_next(annotator)
            except PoolExhausted:
                return {}
            answers = [*range(len(self.project.classes)), None]
            same: dict[int | None, int | None] = dict.fromkeys(answers, then)
            self.leases.announce(held[0], same)
            return same

    def label(
        self, annotator: str, labels: Iterable[tuple[int, int]], source: Source = "asked"
    ) -> None:
        """Give examples their classes, all at once; they are on disk when this returns."""
        names, ids = self.project.classes, self.project.pool.ids
        with self.lock:
            self._record(
                annotator,
                [
                    Entry(annotator, "label", ids[index], names[code], source=source)
                    for index, code in labels
                ],
            )

    def skip(self, annotator: str, index: int, *, for_good: bool = False) -> None:
        """Pass over an example: until the next training, or for good since nobody can tell."""
        kind: Kind = "cannot tell" if for_good else "skip"
        with self.lock:
            self._record(annotator, [Entry(annotator, kind, self.project.pool.ids[index])])

    def undo(self, annotator: str, expected: int | None = None) -> int | None:
        """Take back what the annotator said last, and give them that example again.

        Parameters
        ----------
        expected
            It must be about this example; it is not, if the same undo was heard before.
        """
        with self.lock:
            self._heartbeat(annotator)
            last = self.log.last_of(annotator)
            while last is not None and last.example not in self.project.usable:
                self._take_back(last)  # the example is gone, what was said before is not
                last = self.log.last_of(annotator)
            if last is None:
                return None
            index = self.project.index_of[last.example]
            if expected not in (None, index):
                name = self.project.pool.ids[expected]
                raise Taken(f"You said nothing about {name!r} last: it may be taken back already.")
            self._check_not_taken(index, annotator)
            self._take_back(last)
            self._apply(index)
            self._give_all_back(annotator)
            if index not in self.learner.state.labels and index not in self.learner.state.skipped:
                self.learner.state.hold(index)
                self.leases.give(index, annotator)
        self.on_change()
        return index

    def _take_back(self, entry: Entry) -> None:
        self._write(
            [replace(entry, kind="undo", label=None, undoes=entry.number, created_at="", number=0)]
        )

    def leave(self, annotator: str) -> None:
        """The annotator has closed the page: what they had goes back."""
        with self.lock:
            self.seen.pop(annotator, None)
            self._give_all_back(annotator)
        self.on_change()

    def heartbeat(self, annotator: str, index: int | None = None) -> None:
        """The annotator is still there: their lease begins anew.

        Parameters
        ----------
        index
            What they look at, which is theirs if nobody has it: after a restart nothing is known.
        """
        with self.lock:
            is_new = annotator not in self.seen
            self._heartbeat(annotator)
            if index is not None and self.leases.holder(index) != annotator:
                if not self._is_free_for(index, annotator):
                    name = self.project.pool.ids[index]
                    raise Taken(f"{name!r} is no longer to be answered.")
                self._reassign(self.leases.held_by(annotator), index, annotator)
        if is_new:
            self.on_change()

    def train(self) -> None:
        """Train now, in the background; nothing happens if it is being done."""
        with self.lock:
            if self.training.is_running:
                return
            self.training = replace(self.training, is_running=True)
            state = self.learner.state.copy()
            again = frozenset(self._skipped_this_round)
            seed = [abs(self.project.settings.seed), self.round, len(state.labels)]
            rng = np.random.default_rng(seed)
            self._thread = threading.Thread(
                target=self._train, args=(state, again, rng), daemon=True
            )
            self._thread.start()
        self.on_change()

    def wait(self) -> None:
        """Until no training runs."""
        while self._thread is not None and self._thread.is_alive():
            self._thread.join()

    def _resumed(self, entries: list[Entry]) -> Learner:
        """The learner with all that stands in the log."""
        settings = self.project.settings
        learner = Learner(
            self.project.vectors,
            len(self.project.classes),
            strategy=settings.strategy,
            head=settings.head,
            batch_size=settings.batch_size,
            seed=settings.seed,
            explore=RememberedTypiClust(self.project.folder / EXPLORER_FILE),
        )
        current, index_of = self.log.all_current(), self.project.index_of
        labels = class_indices(self.project, labels_of(self.project, current))
        never = {index_of.get(said.example, -1) for said in current if said.kind == "cannot tell"}
        skipped = (never - {-1}) | self.project.bad.keys()
        drawn = {index_of.get(entry.example, -1) for entry in entries if entry.is_random}
        state = np.random.default_rng([abs(settings.seed), len(entries)]).bit_generator.state
        learner.resume(labels, dict(state), skipped, drawn - {-1})
        return learner

    def _lease_next(self, annotator: str) -> int:
        """What is asked next; what somebody else was told to get is set aside for them."""
        while True:
            index = self.learner.ask()
            taker = self.leases.announced_to(index) or annotator
            self.leases.give(index, taker)
            if taker == annotator:
                return index

    def _reassign(self, held: list[int], promised: int, annotator: str) -> int:
        """Give an annotator what they look at already, instead of the rest."""
        for index in held:
            if index != promised:
                self._give_back(index)
        if promised not in held:
            self.learner.state.hold(promised)
            self.leases.give(promised, annotator)
        return promised

    def _is_free_for(self, index: int, annotator: str) -> bool:
        is_done = index in self.learner.state.labels or index in self.learner.state.skipped
        return not is_done and self.leases.holder(index) in (None, annotator)

    def _heartbeat(self, annotator: str) -> None:
        self.seen[annotator] = self.now()
        self.leases.renew(annotator)
        for index in self.leases.run_out():
            self.learner.state.release(index)

    def _give_all_back(self, annotator: str) -> None:
        self._promised.pop(annotator, None)
        for index in self.leases.held_by(annotator):
            self._give_back(index)

    def _give_back(self, index: int) -> None:
        self.leases.end(index)
        if index in self.learner.state.pending:
            self.learner.state.release(index)

    def _check_not_taken(self, index: int, annotator: str) -> None:
        if self.leases.holder(index) not in (None, annotator):
            raise Taken(f"Somebody else is looking at {self.project.pool.ids[index]!r}.")

    def _check(self, entry: Entry, index: int) -> None:
        """Refuse to say something about an example that cannot be used, or is somebody else's."""
        if index in self.project.bad:
            raise GalaxyError(self.project.bad[index])
        self._check_not_taken(index, entry.annotator)
        current = self.log.current(entry.example)
        if entry.source != "asked" or current is None or current.kind == "skip":
            return
        if current.kind == "label" and current.label not in self._code:
            return  # its class is not in the settings any more: it is asked again
        if current.annotator not in (entry.annotator, IMPORTER):
            raise Taken(f"Somebody else has answered {entry.example!r} meanwhile.")

    def _record(self, annotator: str, entries: list[Entry]) -> None:
        """Write down what was said about some examples, and act on it."""
        indices = [self.project.index_of[entry.example] for entry in entries]
        self._heartbeat(annotator)
        for entry, index in zip(entries, indices):
            self._check(entry, index)
        drawn = self.learner.state.random
        self._write(
            [
                replace(
                    entry, round=self.round, is_random=entry.source == "asked" and index in drawn
                )
                for entry, index in zip(entries, indices)
                if not self.log.repeats(entry, self.round)
            ]
        )
        for entry, index in zip(entries, indices):
            lease = self.leases.end(index)
            self._apply(index)
            if lease is not None and lease.announced:
                answer = None if entry.label is None else self._code[entry.label]
                self._promised[annotator] = lease.announced.get(answer)
        if self._wants_training():
            self.train()
        else:
            self.on_change()

    def _write(self, entries: list[Entry]) -> None:
        for entry in self._database.add(entries):
            self.log.add(entry)

    def _apply(self, index: int) -> None:
        """Let the learner know what stands about an example."""
        current = self.log.current_in_round(self.project.pool.ids[index], self.round)
        self._skipped_this_round.discard(index)
        if current is not None and current.label in self._code:
            self.learner.tell(index, self._code[current.label])
        elif current is not None and current.kind != "label":
            self.learner.state.skip(index)
            if current.kind == "skip":
                self._skipped_this_round.add(index)
        elif index in self.learner.state.labels:
            self.learner.state.withdraw(index)
        elif index in self.learner.state.skipped:
            self.learner.state.restore(index)

    def _wants_training(self) -> bool:
        if self.training.is_running:
            return False
        has_two = len(set(self.learner.state.labels.values())) > 1
        can_stop_exploring = self.learner.is_exploring and has_two
        return can_stop_exploring or self.n_new >= self.project.settings.batch_size

    def _train(
        self,
        state: LabelState,
        again: frozenset[int],
        rng: np.random.Generator,
    ) -> None:
        begin, problem = time.perf_counter(), ""
        try:
            with threadpool_limits(max(n_threads() - 1, 1)):  # one core is for the annotators
                ready = self.learner.prepare_round(state, again, rng)
                if ready.strategy is self.learner.explore:
                    _warm_up(ready.session)
                record = evaluate_round(self.project, ready, ready.state.random)
            seconds = time.perf_counter() - begin
            self._start_round(ready, replace(record, number=self.round + 1, seconds=seconds), again)
        except Exception as error:  # a round that fails must not end the labelling
            problem = one_line(error)
        with self.lock:
            self._n_trained = state.n_answers
            self.training = Training(seconds=time.perf_counter() - begin, problem=problem)
        self.on_change()

    def _start_round(self, ready: NextRound, record: RoundRecord, again: frozenset[int]) -> None:
        with self.lock:
            self._database.add_round(record)
            self.rounds.append(record)
            self.learner.start_round(ready)
            for index in again:  # what was said of them since the training began
                self._apply(index)


def _warm_up(asking: Learner | Session) -> None:
    """Let the explorer find its first questions now, so that nobody waits for them."""
    with suppress(PoolExhausted):
        asking.state.release(asking.ask())
