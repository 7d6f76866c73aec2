"""The default head on shards is the same model as in memory, to the last digit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galaxy_al.models import cutoffs, kernel, kernel_space
from galaxy_al.models.auto import AutoTrainer
from galaxy_al.shards import sharded
from support.shardings import cuts


def pool_of(size, width, dtype, seed=0, n_classes=3):
    rng = np.random.default_rng(seed)
    truth = rng.choice(n_classes, size, p=[0.05, 0.15, 0.8])
    middles = rng.normal(scale=3 / width**0.5, size=(n_classes, width))
    return (middles[truth] + rng.normal(size=(size, width))).astype(dtype), truth


def assert_same_model(one, other):
    assert one.sharpness == other.sharpness
    assert one.trees_from == other.trees_from
    np.testing.assert_array_equal(one.class_priors, other.class_priors)
    np.testing.assert_array_equal(one.held_out.proba, other.held_out.proba)
    for name in ("landmarks", "axes", "slopes"):
        np.testing.assert_array_equal(getattr(one.kernel, name), getattr(other.kernel, name))
    for mine, others in zip(one.kernel.head, other.kernel.head):
        np.testing.assert_array_equal(mine, others)
    if one.kernel.coarse is not None:
        assert one.kernel.coarse.all_from == other.kernel.coarse.all_from


@pytest.mark.parametrize("way", ["all landmarks, kept", "all landmarks", "some landmarks first"])
@pytest.mark.parametrize("width", [3, 40])  # with trees, and without
@settings(max_examples=5)
@given(data=st.data())
def test_the_model_and_its_scores_are_the_same(way, width, data):
    dtype = data.draw(st.sampled_from([np.float16, np.float32, np.float64]))
    size = data.draw(st.sampled_from([700, 2048, 2501]))
    pool, truth = pool_of(size, width, dtype, seed=data.draw(st.integers(0, 99)))
    table = sharded(pool, data.draw(cuts(size)))
    labels = {int(i): int(truth[i]) for i in range(0, size, 9)}
    with pytest.MonkeyPatch.context() as patch:
        if way != "all landmarks, kept":
            patch.setattr(kernel_space, "_KEPT_BYTES", 0)
        if way == "some landmarks first":
            patch.setattr(kernel, "MOST_COARSE", 40)
            patch.setattr(kernel, "_CANDIDATES", 100)
        models = [AutoTrainer(n_classes=3).fit(each, labels) for each in (pool, table)]
        assert_same_model(*models)
        assert (models[0].kernel.coarse is not None) == (way == "some landmarks first")
        assert (models[0].trees is not None) == (width == 3)
        np.testing.assert_array_equal(models[0].proba(pool), np.asarray(models[1].proba(table)))
        snapshots = models[0].snapshot(pool), models[1].snapshot(table)
        np.testing.assert_array_equal(snapshots[0].balanced, np.asarray(snapshots[1].balanced))


def test_the_last_layer_for_base_is_the_same():
    pool, truth = pool_of(3000, 12, np.float32)
    labels = {int(i): int(truth[i]) for i in range(0, 3000, 20)}
    table = sharded(pool, [0, 999, 1000, 2500, 3000])
    one, other = (
        AutoTrainer(n_classes=3, keep_head=True).fit(each, labels).snapshot(each)
        for each in (pool, table)
    )
    np.testing.assert_array_equal(one.embeddings, np.asarray(other.embeddings))
    np.testing.assert_array_equal(one.head[0], other.head[0])


@given(
    st.lists(st.floats(-(2.0**99), 2.0**99, width=32), min_size=2, max_size=60),
    st.integers(1, 59),
    st.data(),
)
def test_a_cutoff_over_shards_is_that_of_the_whole_column(values, count, data):
    column = np.array(values, dtype=np.float32)[:, None]
    table = sharded(column, data.draw(cuts(len(column))))
    assert cutoffs.cutoff(table, count) == cutoffs.cutoff(column, count)
