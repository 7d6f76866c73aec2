"""What is farthest from the taken examples, against the definition."""

from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from galaxy_al.strategies import spreading
from galaxy_al.strategies.copying import fork
from galaxy_al.strategies.spreading import Apart

SIZE = 30
points = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=SIZE, max_size=SIZE)


def by_definition(candidates, taken, embeddings):
    def apart(index):
        return min(float(((embeddings[index] - embeddings[other]) ** 2).sum()) for other in taken)

    most = max(apart(index) for index in candidates)
    return next(index for index in candidates if apart(index) == most)


@given(points, st.data())
def test_it_is_the_farthest_however_the_taken_ones_change(rows, data):
    embeddings, apart, taken = np.array(rows, dtype=np.float32), Apart(), {0: 1}
    with mock.patch.object(spreading, "_MOST_RECENT", data.draw(st.integers(0, 5))):
        for _ in range(10):
            changed = data.draw(st.integers(0, SIZE - 1))
            if changed in taken and len(taken) > 1:
                del taken[changed]
            else:
                taken[changed] = 1
            some = st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=6, unique=True)
            candidates = data.draw(some)
            for one in (apart, fork(apart)):
                found = one.farthest(candidates, taken, embeddings)
                assert found == by_definition(candidates, taken, embeddings)


def test_a_copy_shares_what_is_remembered():
    embeddings = np.random.default_rng(0).normal(size=(50, 3))
    apart = Apart()
    apart.farthest([1, 2], dict.fromkeys(range(10, 40)), embeddings)
    assert fork(apart)._columns._around is apart._columns._around
