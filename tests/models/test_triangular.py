"""The inverse of a triangular matrix against NumPy's general one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from galaxy_al.models.triangular import triangular_inverse


@given(st.integers(1, 600), st.sampled_from([np.float32, np.float64]))
def test_it_is_the_inverse(size, precision):
    rng = np.random.default_rng(size)
    lower = np.tril(rng.normal(size=(size, size)) / size)
    lower[np.diag_indices(size)] = rng.uniform(0.5, 2, size=size)
    inverse = triangular_inverse(lower.astype(precision))
    assert inverse.dtype == precision
    assert (np.triu(inverse, 1) == 0).all()
    np.testing.assert_allclose(inverse, np.linalg.inv(lower), atol=1e-5)
