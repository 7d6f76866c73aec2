"""A pool in shards is asked about exactly as one in memory, with the same seed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galaxy_al import STRATEGIES, Snapshot
from galaxy_al.errors import InvalidArgument
from galaxy_al.graphs import buckets
from galaxy_al.shards import sharded
from galaxy_al.strategies import make_strategy
from support.every_strategy import last_layer, some_pool
from support.random_pools import tables
from support.shardings import converse, cuts, on_shards

ON_SHARDS = [name for name, strategy in STRATEGIES.items() if strategy.works_on_shards]
OTHERS = sorted(STRATEGIES.keys() - set(ON_SHARDS))


def test_these_strategies_work_on_shards():
    assert {
        "galaxy",
        "direct",
        "fair-cuts",
        "confidence",
        "margin",
        "entropy",
        "most-likely-positive",
        "random",
        "base",
    } <= set(ON_SHARDS)


@st.composite
def snapshots(draw):
    proba = draw(tables(max_size=40))
    size, n_classes = proba.shape
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_labels = draw(st.integers(0, size - 1))
    known = dict(
        zip(
            rng.permutation(size)[:n_labels].tolist(),
            rng.integers(n_classes, size=n_labels).tolist(),
        )
    )
    skipped = [i for i in range(size) if i not in known and rng.random() < 0.1]
    embeddings, head = last_layer(proba, seed=int(rng.integers(100)))
    if draw(st.booleans()):  # examples at the same place
        embeddings = np.round(embeddings)
    if draw(st.booleans()):
        embeddings = embeddings.astype(np.float32)
    priors = rng.random(n_classes) + 0.01 if draw(st.booleans()) else None
    return Snapshot(proba, known, embeddings, head, skipped=skipped, class_priors=priors)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {}) for name in ON_SHARDS),
        ("galaxy", {"across": "rotate"}),
        ("direct", {"annotators": 3}),
        ("fair-cuts", {"spread": 1}),
    ],
)
@settings(max_examples=60)
@given(data=st.data())
def test_the_questions_are_the_same(name, options, data):
    snapshot, seed = data.draw(snapshots()), data.draw(st.integers(0, 1000))
    in_shards = on_shards(snapshot, data.draw(cuts(snapshot.size)))
    budget = data.draw(st.integers(1, 12))
    asked = [
        converse(
            make_strategy(name, **options).start(
                each, rng=np.random.default_rng(seed), budget=budget
            ),
            snapshot.n_classes,
            seed,
        )
        for each in (snapshot, in_shards)
    ]
    assert asked[0] == asked[1]


@pytest.mark.parametrize("name", ["galaxy", "direct", "fair-cuts"])
@settings(max_examples=40)
@given(data=st.data())
def test_they_are_the_same_where_buckets_are_searched_in_place(name, data):
    """Buckets too large to fetch are searched where they are; here all but the smallest are."""
    snapshot, seed = data.draw(snapshots()), data.draw(st.integers(0, 1000))
    asked = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets, "_MOST_FETCHED", 2)
        patch.setattr(buckets, "_PIVOTS", 4)
        for each in (snapshot, on_shards(snapshot, data.draw(cuts(snapshot.size)))):
            session = make_strategy(name).start(each, rng=np.random.default_rng(seed))
            asked.append(converse(session, snapshot.n_classes, seed))
    assert asked[0] == asked[1]


@pytest.mark.parametrize("n_ties", [0, 150_000])
def test_a_large_pool_with_many_ties(n_ties):
    rng = np.random.default_rng(0)
    scores = rng.random(200_000).astype(np.float32) ** 3
    scores[rng.permutation(len(scores))[:n_ties]] = 1e-9
    snapshot = Snapshot(
        np.stack([scores, 1 - scores], axis=1), {int(i): int(scores[i] < 0.5) for i in range(300)}
    )
    in_shards = on_shards(snapshot, [0, 10, 70_000, 70_001, 150_000, 200_000])
    for name in ("galaxy", "direct", "fair-cuts"):
        asked = [
            converse(
                make_strategy(name).start(each, rng=np.random.default_rng(1)), 2, seed=1, steps=60
            )
            for each in (snapshot, in_shards)
        ]
        assert asked[0] == asked[1], name


@pytest.mark.parametrize("name", OTHERS)
def test_the_others_say_that_they_cannot(name):
    proba, _, labels = some_pool()
    snapshot = Snapshot(proba, labels, *last_layer(proba))
    in_shards = on_shards(snapshot, [0, 20, snapshot.size])
    with pytest.raises(InvalidArgument, match=r"needs the whole pool at once.*fair-cuts, .*random"):
        make_strategy(name).start(in_shards, rng=np.random.default_rng(0))


@pytest.mark.parametrize("name", ["galaxy", "confidence"])
def test_wrong_scores_are_refused_by_their_row(name):
    table = np.full((6, 2), 0.5)
    table[4, 1] = 2
    snapshot = Snapshot(sharded(table, [0, 3, 6]), {0: 0, 1: 1})
    with pytest.raises(InvalidArgument, match="row 4 is"):
        make_strategy(name).start(snapshot, rng=np.random.default_rng(0)).ask()
