"""The one place that changes a project: questions out, answers in, training beside them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np

from galaxy_al.audit.random_sample import Answer
from galaxy_al.errors import GalaxyError, InvalidArgument, Taken
from galaxy_al.labelling.advising import Advice
from galaxy_al.labelling.answers import Answers
from galaxy_al.labelling.applying import Applying
from galaxy_al.labelling.audit_report import AuditReport
from galaxy_al.labelling.auditor import Auditor, Plan
from galaxy_al.labelling.background import Background, Training, Work
from galaxy_al.labelling.database import RoundRecord
from galaxy_al.labelling.disagreements import Disagreement, label_weights
from galaxy_al.labelling.evaluation import evaluate_round
from galaxy_al.labelling.guidance import Guidance
from galaxy_al.labelling.log import Entry, Kind, Source
from galaxy_al.labelling.model import LabeledExamples, weights_by_index
from galaxy_al.labelling.opinions import Opinions
from galaxy_al.labelling.presence import Presence
from galaxy_al.labelling.project import Project, open_log
from galaxy_al.labelling.questions import Questions
from galaxy_al.labelling.reliability import AgreementReport
from galaxy_al.labelling.resuming import resume
from galaxy_al.labelling.review import Item
from galaxy_al.labelling.second_look import SecondLook
from galaxy_al.labelling.suspects import held_out_of
from galaxy_al.labelling.views import Question, Scores, View, with_labels
from galaxy_al.learner import NextRound
from galaxy_al.strategies import Strategy
from galaxy_al.strategies.label_state import LabelState

LEASE_SECONDS = 120.0


class Service:
    """Gives annotators questions and takes their answers; any number of threads may call it.

    Examples are named by their ids and classes by their names. Every answer is on disk before it
    counts. The model is trained in the background as soon as two classes are known, and then when
    the goal of the project wants it: after every ``batch_size`` answers, or more often.

    Parameters
    ----------
    lease_seconds
        How long an example is reserved for an annotator who sends nothing.
    on_change
        Called, from any thread, after every change.
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
        self.on_change = on_change
        self._lock = threading.RLock()
        self._database = open_log(project.folder)
        entries = list(self._database.entries())
        auditor = Auditor(project, self._database, entries)
        self._answers = Answers(project, self._database, entries, auditor.add)
        self._log = self._answers.log
        self._opinions = Opinions(project, self._answers, self._lock)
        self._rounds = self._database.rounds()
        self._training = Training(seconds=self._rounds[-1].seconds if self._rounds else 0.0)
        self._background = Background(self._after_training)
        self._presence = Presence(clock)
        self._class_index = {name: index for index, name in enumerate(project.classes)}
        self._learner = resume(project, entries, self._log)
        state = self._answers, self._learner, self._lock
        self._second_look = SecondLook(project, *state, lambda: self.on_change())
        self._guidance = Guidance(project, self._database, auditor, *state)
        self._questions = Questions(
            self._learner, auditor, self._answers.overlap, lease_seconds, clock
        )
        self._applying = Applying(project, self._log, self._learner, self.round)
        self._n_at_training = self._learner.state.n_answers

    def close(self) -> None:
        """Wait until nothing is running in the background, then close the project."""
        self.wait()
        self._database.close()
        self.project.close()

    def wait(self) -> None:
        """Wait until nothing is running in the background."""
        self._background.wait()
        self._second_look.wait()

    @property
    def round(self) -> int:
        """How many trainings there were."""
        return self._rounds[-1].number if self._rounds else 0

    @property
    def training(self) -> Training:
        """What the background is doing."""
        return self._training

    @property
    def strategy(self) -> Strategy:
        """What asks once two classes are known."""
        return self._learner.strategy

    @property
    def n_new(self) -> int:
        """How many answers came since the last training began; a correction or an undo counts."""
        return self._learner.state.n_answers - self._n_at_training

    @property
    def _state(self) -> LabelState:
        return self._learner.state  # of this round: every round has its own

    def next(self, annotator: str, *, ahead: bool = False) -> Question:
        """The question of an annotator: the one they have, or a new one.

        Parameters
        ----------
        ahead
            Whether to announce what follows each answer.
        """
        with self._lock:
            self._see(annotator)
            index = self._questions.next(annotator)
            after = self._questions.announce(annotator) if ahead else {}
        ids, names = self.project.pool.ids, self.project.classes
        follows = {
            None if answer is None else names[answer]: None if then is None else ids[then]
            for answer, then in after.items()
        }
        return Question(ids[index], MappingProxyType(follows))

    def label(self, annotator: str, labels: Mapping[str, str], source: Source = "asked") -> None:
        """Label examples, all or none. The labels are on disk when this returns."""
        for name in labels.values():
            if name not in self._class_index:
                allowed = ", ".join(self._class_index)
                raise InvalidArgument(f"Unknown class {name!r}. Choose from: {allowed}.")
        given = [Entry(annotator, "label", id, name, source=source) for id, name in labels.items()]
        self._record(annotator, given)

    def skip(
        self, annotator: str, id: str, *, cannot_tell: bool = False, source: Source = "asked"
    ) -> None:
        """Skip an example for a batch of answers, or for good if the annotator cannot tell.

        The next training ends a skip, but not before ``batch_size`` answers if the goal trains
        after every few.
        """
        kind: Kind = "cannot tell" if cannot_tell else "skip"
        self._record(annotator, [Entry(annotator, kind, id, source=source)])

    def undo(self, annotator: str, expected: str | None = None) -> str | None:
        """Undo the last answer of an annotator and ask them that example again.

        Parameters
        ----------
        expected
            The example that the annotator wants to undo. A request that is sent twice must not
            undo two answers.
        """
        if expected is not None:
            self.project.find(expected)
        with self._lock:
            self._see(annotator)
            last = self._answers.last_usable(annotator)
            if last is None:
                return None
            if expected not in (None, last.example):
                raise Taken(f"{expected!r} was not your last answer; it may already be undone.")
            index = self.project.find(last.example)
            if not self._questions.is_second_opinion(index):
                self._check_not_taken(index, annotator)
            self._answers.undo(last)
            self._applying.apply(index)
            self._applying.apply_consensus()
            self._questions.keep(index)
            self._questions.give_all_back(annotator)
            if self._questions.is_free_for(index, annotator):
                self._questions.lease_only(index, annotator)
        self._train_or_notify()
        return last.example

    def leave(self, annotator: str) -> None:
        """The annotator has closed the page: others may get what they held."""
        with self._lock:
            self._presence.leave(annotator)
            self._questions.give_all_back(annotator)
        self.on_change()

    def heartbeat(self, annotator: str, id: str | None = None) -> None:
        """The annotator is still there: restart the time of their leases.

        Parameters
        ----------
        id
            The example that their page shows. They get it if it is free: after a restart the
            service does not know who had what.
        """
        index = None if id is None else self.project.find(id)
        with self._lock:
            is_new = self._see(annotator)
            if index is not None and self._questions.holder(index) != annotator:
                if not self._questions.is_free_for(index, annotator):
                    raise Taken(f"{id!r} can no longer be answered.")
                self._questions.give_all_back(annotator)
                self._questions.lease_only(index, annotator)
        if is_new:
            self.on_change()

    def train(self) -> None:
        """Start a training in the background, unless one is running."""
        with self._lock:
            if self._training.is_running:
                return
            self._background.start(self._next_training())
        self.on_change()

    def start_audit(self, plan: Plan, *, again: bool = False) -> None:
        """Let the next questions be an audit's: begin one, or continue the one there is.

        Parameters
        ----------
        again
            Whether to begin a new audit, of the model as it is now.
        """
        with self._lock:
            cannot_tell = self._applying.cannot_tell()
        self._guidance.start_audit(plan, cannot_tell, again=again)
        self.on_change()

    def audit(self) -> AuditReport | None:
        """What the last audit says so far; None if there never was one."""
        return self._guidance.audit()

    def advice(self) -> Advice:
        """What to tell: how many are left, what comes next, when to stop."""
        return self._guidance.advice(tuple(self._rounds))

    def scores(self) -> Scores:
        """What a search needs to know about the pool."""
        with self._lock:
            state, learner = self._state, self._learner
            busy = frozenset({*state.labels, *state.skipped, *state.pending})
            return Scores(learner.proba, not learner.is_exploring, busy)

    def labeled(self, annotator: str | None = None) -> LabeledExamples:
        """The labels that count, for an export.

        Parameters
        ----------
        annotator
            Leave out what this person is still to be asked without seeing the answers of others.
        """
        with self._lock:
            found = LabeledExamples.of(self.project, self._log)
            proba = None if self._learner.is_exploring else self._learner.proba
            held_out = held_out_of(self._learner.model)
        found = found.without(self._opinions.hidden_from(annotator)).judged_by(held_out)
        return found if proba is None else replace(found, proba=proba[found.indices])

    def review(self, annotator: str | None = None) -> list[Item]:
        """What to look at again, as of `labeled`; to decide, `label` as ``"review"``."""
        return self._second_look.items(self._opinions.hidden_from(annotator))

    def disagreements(self, annotator: str | None = None) -> list[Disagreement]:
        """What people disagree on, as of `labeled`; to decide, `label` as ``"review"``."""
        return self._opinions.disagreements(annotator)

    def agreement(self) -> AgreementReport | None:
        """How well people agree; None if no example has the labels of two people."""
        return self._opinions.agreement()

    def view(self) -> View:
        """The project at this moment."""
        with self._lock:  # as briefly as possible: annotators wait
            learner = self._learner
            session, model = learner.session_copy(), learner.model
            make = partial(
                View,
                entries=tuple(self._log.all_current()),
                round=self.round,
                rounds=tuple(self._rounds),
                n_new=self.n_new,
                current_batch=learner.current_batch,
                training=self.training,
                strategy=(learner.explore if learner.is_exploring else learner.strategy).name,
                is_exploring=learner.is_exploring,
                people=self._presence.people(self._log),
            )
        return with_labels(make, self.project, session, model)

    def _see(self, annotator: str) -> bool:
        """Note that an annotator is here; whether they were not before."""
        self._questions.renew(annotator)
        return self._presence.see(annotator)

    def _record(self, annotator: str, entries: list[Entry]) -> None:
        """Write answers to the log and act on them."""
        indices = [self.project.find(entry.example) for entry in entries]
        with self._lock:
            self._see(annotator)
            for entry, index in zip(entries, indices):
                self._check(entry, index)
            noted = self._second_look.noted(entries, indices, self.round)
            noted = [self._guidance.auditor.claimed(entry) for entry in noted]
            since = self._applying.since
            self._answers.write(entry for entry in noted if not self._log.repeats(entry, since))
            for entry, index in zip(entries, indices):
                answer = None if entry.label is None else self._class_index[entry.label]
                self._questions.answer(annotator, index, answer)
                self._applying.apply(index)
            self._applying.apply_consensus()
        self._train_or_notify()

    def _check(self, entry: Entry, index: int) -> None:
        """Refuse an answer to an example that cannot be used or belongs to another annotator."""
        if index in self.project.bad:
            raise GalaxyError(self.project.bad[index])
        self._check_not_taken(index, entry.annotator)

    def _check_not_taken(self, index: int, annotator: str) -> None:
        if self._questions.holder(index) not in (None, annotator):
            raise Taken(f"Another annotator is looking at {self.project.pool.ids[index]!r}.")

    def _train_or_notify(self) -> None:
        with self._lock:
            wants_training = self._wants_training()
        if wants_training:
            self.train()
        else:
            self.on_change()

    def _wants_training(self) -> bool:
        if self.training.is_running:
            return False
        learner = self._learner
        return learner.can_stop_exploring or self.n_new >= learner.current_batch

    def _next_training(self) -> Work:
        self._training = replace(self._training, is_running=True)
        state = self._state.copy()
        again = self._applying.ending_skips()
        self._n_at_training = state.n_answers
        seed = [abs(self.project.settings.seed), self.round, len(state.labels)]
        weights = weights_by_index(self.project, label_weights(self._log))
        rng, answers = np.random.default_rng(seed), self._guidance.answers()
        return partial(self._train, state, again, rng, weights, answers)

    def _after_training(self, training: Training) -> Work | None:
        """Note how a training ended; begin the next one if enough answers came meanwhile."""
        with self._lock:
            self._training = training
            again = not training.problem and self._wants_training()
            work = self._next_training() if again else None
        self.on_change()
        return work

    def _train(
        self,
        state: LabelState,
        again: frozenset[int] | None,
        rng: np.random.Generator,
        weights: Mapping[int, float],
        answers: Sequence[Answer],
    ) -> None:
        """Prepare the next round from a copy of the state, then start it."""
        begin = time.perf_counter()
        ready = self._learner.prepare_round(state, again or (), rng, weights)
        record = evaluate_round(self.project, ready, answers)
        seconds = time.perf_counter() - begin
        with self._lock:
            numbered = replace(record, number=self.round + 1, seconds=seconds)
            self._start_round(ready, numbered, again)
        self._second_look.refresh()

    def _start_round(
        self, ready: NextRound, record: RoundRecord, again: frozenset[int] | None
    ) -> None:
        self._rounds.append(self._database.add_round(record))
        self._learner.start_round(ready)
        if again is not None:  # that skips end is not an answer
            self._n_at_training += self._applying.end_skips(again, self.round)
