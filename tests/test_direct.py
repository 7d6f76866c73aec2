"""DIRECT against its definition written naively, and what it and GALAXY do with wrong labels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galaxy_al import UNLABELED, Snapshot
from galaxy_al.strategies.direct import Direct
from naive_direct import NaiveDirect
from test_galaxy import pools

pytestmark = pytest.mark.usefixtures("bucket_sizes")


def groups(session, budget):
    """Ask a budget, group after group; a group ends where the queue does."""
    asked = 0
    while asked < budget:
        group = [session.ask()]
        while session._queue and asked + len(group) < budget:
            group.append(session.ask())
        asked += len(group)
        yield group


@settings(max_examples=300)
@given(pools(max_size=30), st.integers(1, 20), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_every_group_is_one_the_definition_allows(pool, budget, annotators, seed):
    proba, truth, labels = pool
    known = {i: int(y) for i, y in enumerate(labels) if y != UNLABELED}
    budget = min(budget, len(truth) - len(known))
    if not budget:
        return
    strategy = Direct(annotators)
    session = strategy.start(
        Snapshot(proba, labels), rng=np.random.default_rng(seed), budget=budget
    )
    naive = NaiveDirect(proba, budget, annotators)
    for group in groups(session, budget):
        naive.check(group, known)
        for index in group:
            session.tell(index, truth[index])
            known[index] = int(truth[index])
