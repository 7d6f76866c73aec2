"""Cutoffs against sorting."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from galaxy_al.models.cutoffs import cutoff


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=40, unique=True), st.data())
def test_so_many_values_lie_above_a_cutoff(values, data):
    count = data.draw(st.integers(0, len(values)))
    found = cutoff(np.array(values), count) if count else max(values) + 1
    largest = sorted(values)[len(values) - count :]
    assert all(value >= found for value in largest)
    assert sum(value > found for value in values) <= count
