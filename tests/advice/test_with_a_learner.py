"""The advice from what a learner and a log have, put together as a project does it."""

from __future__ import annotations

import numpy as np

from galaxy_al.advice.forecast import expected_average_precision, forecast_finds, forecast_rise
from galaxy_al.advice.left import left_by_model, left_by_random_labels
from galaxy_al.advice.proof import plan_proof
from galaxy_al.advice.random_labels import RandomLabels
from galaxy_al.advice.sentences import Progress, advice_sentence, finds_clause, rise_clause
from galaxy_al.advice.stopping import advise_stop, evidence_of
from galaxy_al.learner import Learner
from galaxy_al.models.decisions import choose_thresholds
from galaxy_al.models.estimates import estimate_decisions, held_out_table
from galaxy_al.simulation import play_round


def test_a_project_gets_its_sentence_its_forecasts_and_its_rule() -> None:
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], [40, 760])
    vectors = rng.normal(size=(800, 8)) + 2.5 * (truth == 0)[:, None]
    learner = Learner(vectors, 2, batch_size=50)
    history, order, trainings = [], [], []
    for _ in range(4):
        order += play_round(learner, truth).indices
        labels, known = learner.state.labels, learner.proba[:, 0].astype(float)
        known[list(labels)] = [label == 0 for label in labels.values()]
        trainings.append((len(labels), expected_average_precision(known)))
    history = [(truth[i] == 0, i in learner.state.random) for i in order]

    size, n_found = len(truth), sum(rare for rare, _ in history)
    n_free = size - len(order)
    draws = RandomLabels.of_history(size, *zip(*history))
    table = held_out_table(np.asarray(learner.proba), learner.model.held_out)
    decision = choose_thresholds("f1", table, learner.model.class_priors)
    count = estimate_decisions(table, learner.model.held_out, decision).classes[0].count
    left = left_by_model(count, n_found, n_free)
    since = next((i for i, (rare, _) in enumerate(reversed(history)) if rare), len(history))
    stop = advise_stop(0.9, n_found, n_free, since, evidence_of([], draws, n_free, n_found))
    session = learner.session_copy()
    planned = learner.proba[[session.ask() for _ in range(100)], 0]
    asked = [rare for rare, is_random in history if not is_random]
    progress = Progress(
        n_found,
        n_free,
        len(order),
        last=(100, sum(rare for rare, _ in history[-100:])),
        left=left,
        proof=plan_proof(n_free, len(order)),
        stop=stop,
    )

    assert left is not None
    assert left.low <= 40 - n_found <= left.high
    by_random_labels = left_by_random_labels(draws, n_free, n_found)
    assert by_random_labels is not None
    assert by_random_labels.low <= 40 - n_found <= by_random_labels.high
    said = advice_sentence(progress)
    assert said.startswith(f"{n_found} found, ")
    assert "as the model estimates it" in said
    assert "the last 100 questions found" in said
    assert "the next 100" in finds_clause(forecast_finds(planned, asked, 100, n_found), 100)
    rise = forecast_rise(trainings, 100)
    assert rise is not None
    assert rise.low <= 0 <= rise.high
    assert rise_clause(rise, 100).startswith("100 more labels may change")
