"""Random ways to cut a pool into shards, and conversations that use every verb of a session."""

import numpy as np
from hypothesis import strategies as st

from galaxy_al import Snapshot
from galaxy_al.errors import PoolExhausted
from galaxy_al.shards import sharded


@st.composite
def cuts(draw, size):
    """Where shards begin, and the number of rows."""
    inner = draw(st.sets(st.integers(1, size - 1), max_size=6)) if size > 1 else set()
    return [0, *sorted(inner), size]


def on_shards(snapshot, starts, shard=sharded):
    """The same snapshot with its tables in shards."""
    embeddings = snapshot.embeddings
    return Snapshot(
        shard(snapshot.proba, starts),
        snapshot.known,
        None if embeddings is None else shard(embeddings, starts),
        snapshot.head,
        snapshot.other,
        snapshot.skipped,
        snapshot.class_priors,
        snapshot.view,
    )


def converse(session, n_classes, seed, steps=25):
    """Everything a session asks while its questions are answered, kept, given back and skipped.

    What is done is the same for equal sessions: it depends on the seed and the questions alone.
    """
    rng, seen = np.random.default_rng(seed), []
    for _ in range(steps):
        try:
            index = session.ask()
        except PoolExhausted:
            return [*seen, None]
        seen.append(index)
        action, label = rng.random(), int(rng.integers(n_classes))
        if action < 0.6:
            session.tell(index, label)
        elif action < 0.7:
            session.skip(index)
        elif action < 0.8:
            session.release(index)
        if action > 0.9 and session.state.labels:  # a correction
            known = sorted(session.state.labels)
            session.tell(known[int(rng.integers(len(known)))], label)
        if action > 0.97 and session.state.skipped:
            session.state.restore(sorted(session.state.skipped)[0])
    return [*seen, *session.look_ahead(seen[-1]).values()]
