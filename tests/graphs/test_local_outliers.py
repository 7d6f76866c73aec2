"""Local outliers against their definition written naively, and against scikit-learn's distances."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import pairwise_distances

from galaxy_al.graphs import local_outliers as module
from galaxy_al.graphs.local_outliers import SIZES, choose_references, local_outliers


def naive_scale(distances, itself):
    """The distance to the 6th nearest other reference, or to the farthest of fewer."""
    others = sorted(d for at, d in enumerate(distances) if at != itself)
    return others[:6][-1] if others else 0.0


def naive_scores(embeddings):
    references = choose_references(len(embeddings)).tolist()
    apart = pairwise_distances(embeddings)
    scores = np.zeros(len(embeddings))
    all_scales = {}
    for size in SIZES:
        chosen = references[:size]
        place = {index: at for at, index in enumerate(chosen)}
        scale = [naive_scale(apart[i, chosen], place.get(i)) for i in range(len(embeddings))]
        all_scales[size] = scale
    middle = embeddings[references].mean(axis=0)
    farthest = np.linalg.norm(embeddings - middle, axis=1).max()
    usual = np.median([all_scales[SIZES[-1]][i] for i in references])
    least = 1e-6 * (usual or farthest) or 1.0
    for size in SIZES:
        chosen, scale = references[:size], all_scales[size]
        for i in range(len(embeddings)):
            near = sorted((apart[i, j], at) for at, j in enumerate(chosen) if j != i)[:4]
            around = np.mean([scale[chosen[at]] for _, at in near]) if near else 0.0
            scores[i] += np.log((scale[i] + least) / (around + least)) / len(SIZES)
    return scores, np.array(all_scales[SIZES[1]])


@pytest.mark.parametrize("size", [2, 5, 20, 61, 300])
def test_the_scores_are_those_of_the_definition(size):
    embeddings = np.random.default_rng(size).normal(size=(size, 3)).astype(np.float32)
    found = local_outliers(embeddings)
    scores, scales = naive_scores(embeddings)
    assert np.allclose(np.log(found.factors), scores[found.indices], atol=1e-3)
    assert np.allclose(found.scales, scales[found.indices], atol=1e-3)
    assert (np.diff(found.factors) <= 0).all()
    assert sorted(found.indices.tolist()) == list(range(size))


@given(st.integers(1, 40), st.integers(0, 1000), st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_units_and_offsets_do_not_matter(size, seed, offset, unit):
    embeddings = np.random.default_rng(seed).normal(size=(size, 2))
    there = local_outliers(embeddings * unit + offset * unit)
    here = local_outliers(embeddings)
    assert np.allclose(np.log(there.factors), np.log(here.factors), atol=2e-2)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_tiny_pools_have_outliers(size):
    found = local_outliers(np.random.default_rng(0).normal(size=(size, 2)))
    assert np.isfinite(found.factors).all()
    assert len(found.indices) == size


def test_a_pool_of_copies_has_no_outlier_but_what_differs():
    embeddings = np.ones((500, 4))
    assert np.allclose(local_outliers(embeddings).factors, 1)
    embeddings[123] = 5
    assert local_outliers(embeddings).indices[0] == 123


def test_a_constant_column_changes_nothing():
    embeddings = np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32)
    constant = np.column_stack([embeddings, np.full(400, 7, dtype=np.float32)])
    assert np.allclose(
        local_outliers(embeddings).factors, local_outliers(constant).factors, atol=1e-4
    )


def test_a_large_pool_is_looked_at_in_part(monkeypatch):
    monkeypatch.setattr(module, "_CANDIDATES", 50)
    found = local_outliers(np.random.default_rng(0).normal(size=(400, 2)))
    assert len(set(found.indices.tolist())) == 50
