"""What a training tells beside its model, against the parts that it is made of."""

import numpy as np
import pytest

from galaxy_al.labelling.insight import Insight, insight_of
from galaxy_al.labelling.service import Service
from galaxy_al.models.auto import HeldOut
from galaxy_al.models.decisions import choose_thresholds
from galaxy_al.models.estimates import Interval, estimate_decisions, held_out_table
from galaxy_al.strategies.copying import fork
from support.projects import small_project


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A project, and the round that was prepared from 60 of its labels."""
    project, truth = small_project(tmp_path_factory.mktemp("insight"), batch_size=1000)
    service = Service(project)
    for _ in range(60):
        id = service.next("ann").id
        service.label("ann", {id: truth[id]})
    service.wait()
    state = service._learner.state.copy()
    ready = service._learner.prepare_round(state, rng=np.random.default_rng(0))
    answers = service._guidance.answers()
    service.close()
    return project, ready, answers


def test_the_count_is_that_of_all_rare_classes_as_one(trained):
    project, ready, answers = trained
    insight, _ = insight_of(project, ready, answers)
    held_out = ready.model.held_out
    table = held_out_table(np.asarray(ready.snapshot.proba), held_out)
    two = np.stack([table[:, 0] + table[:, 1], table[:, 2]], axis=1)
    proba = np.stack([held_out.proba[:, 0] + held_out.proba[:, 1], held_out.proba[:, 2]], axis=1)
    known = HeldOut(held_out.indices, np.where(held_out.targets == 2, 1, 0), proba)
    decision = choose_thresholds("f1", two, two.mean(axis=0))
    count = estimate_decisions(two, known, decision).classes[0].count
    for part in ("value", "low", "high"):
        assert getattr(insight.count, part) == pytest.approx(getattr(count, part), rel=1e-3)


def test_the_planned_questions_are_those_of_a_copy_and_nothing_is_asked(trained):
    project, ready, answers = trained
    busy = set(ready.session.state.pending)
    insight, _ = insight_of(project, ready, answers)
    assert set(ready.session.state.pending) == busy
    copy, table = fork(ready.session), np.asarray(ready.snapshot.proba, dtype=np.float64)
    expected = [1 - table[copy.ask(), -1] for _ in insight.planned]
    assert insight.planned == pytest.approx(expected, abs=1e-4)
    assert len(insight.planned) == min(200, 200 - len(ready.state.labels))


def test_it_survives_the_database(trained):
    insight, _ = insight_of(*trained)
    assert Insight.loads(insight.dumps()) == insight
    odd = Insight(Interval(1.0, 0.0, 2.5), (), 0.0, None, 0)
    assert Insight.loads(odd.dumps()) == odd


def test_random_answers_are_counted_and_the_average_precision_is_a_share(trained):
    insight, accuracy = insight_of(*trained)
    assert insight.n_random == sum(answer.is_random for answer in trained[2])
    assert 0 < insight.average_precision <= 1
    assert 0 <= accuracy.low <= accuracy.value <= accuracy.high <= 1


def test_other_heads_and_one_class_tell_nothing(tmp_path):
    from sklearn.naive_bayes import GaussianNB

    from galaxy_al.learner import Learner

    project, truth = small_project(tmp_path)
    names = [project.classes.index(truth[id]) for id in project.pool.ids]
    for head, indices in (
        (lambda seed: GaussianNB(), range(40)),
        ("auto", [i for i, k in enumerate(names) if k == 2][:20]),
    ):
        learner = Learner(project.vectors, 3, head=head)
        for index in indices:
            learner.tell(index, names[index])
        ready = learner.prepare_round(learner.state.copy())
        assert insight_of(project, ready, []) is None
