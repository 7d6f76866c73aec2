"""Every strategy asks by its view of the probabilities."""

import numpy as np
import pytest

from galaxy_al import STRATEGIES, UNLABELED, Snapshot
from galaxy_al.snapshot import balanced_proba
from galaxy_al.strategies import make_strategy
from support.every_strategy import every_strategy, last_layer, some_pool

PRIORS = np.array([0.02, 0.08, 0.9])


def asked(name, snapshot, count=15):
    session = make_strategy(name, view=snapshot.view).start(
        snapshot, rng=np.random.default_rng(0), budget=5
    )
    indices = []
    for _ in range(count):
        indices.append(session.ask())
        session.tell(indices[-1], indices[-1] % 3)
    return indices


@every_strategy
def test_a_view_is_the_same_as_a_model_that_has_only_these_probabilities(name):
    """In the pool's view the priors do not matter; in the balanced one they are divided by."""
    proba, _, labels = some_pool(size=80)
    embeddings, (weights, bias) = last_layer(proba)
    both = Snapshot(proba, labels, embeddings, (weights, bias), class_priors=PRIORS)
    plain = Snapshot(proba, labels, embeddings, (weights, bias + np.log(PRIORS)), view="pool")
    assert asked(name, both.in_view("pool")) == asked(name, plain)
    divided = balanced_proba(proba, PRIORS)
    alone = Snapshot(divided, labels, embeddings, (weights, bias))
    assert asked(name, both) == asked(name, alone)


@pytest.mark.parametrize("name", ["confidence", "margin", "entropy", "base", "badge"])
def test_these_ask_by_the_probabilities_in_the_pool(name):
    proba = np.array([[0.02, 0.98], [0.5, 0.5], [0.001, 0.999]])
    embeddings = np.log(proba[:, :1] / proba[:, 1:])
    head = np.array([[0.5], [-0.5]]), -np.log([0.02, 0.98])  # of the balanced view
    labels = np.full(3, UNLABELED)
    snapshot = Snapshot(proba, labels, embeddings, head, class_priors=[0.02, 0.98])
    rng = np.random.default_rng(0)
    first = {
        view: make_strategy(name, view=view).start(snapshot, rng=rng, budget=1).ask()
        for view in ("pool", "balanced", None)
    }
    assert first[None] == first["pool"]
    if name != "badge":  # whose embeddings count as well
        assert (first["pool"], first["balanced"]) == (1, 0)


def test_a_view_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match=r"Unknown view 'x'\. Choose from: balanced, pool"):
        make_strategy("margin", view="x")
    with pytest.raises(ValueError, match="Unknown view 'x'"):
        Snapshot([[0.5, 0.5]], view="x")
    with pytest.raises(ValueError, match="Options: view"):
        make_strategy("margin", size=3)


def test_views_change_nothing_without_priors():
    proba, _, labels = some_pool()
    snapshot = Snapshot(proba, labels)
    assert snapshot.in_view("pool").scores is snapshot.scores
    assert {strategy.view for strategy in STRATEGIES.values()} == {"balanced", "pool"}
