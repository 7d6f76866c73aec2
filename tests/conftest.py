import pytest
from hypothesis import HealthCheck, settings

from galaxy_al import ranking

settings.register_profile(
    "house",
    deadline=None,
    # The one fixture of a test that is not made anew for every example is `bucket_sizes`.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    print_blob=True,
)
settings.load_profile("house")


@pytest.fixture(params=["as they are", "tiny"])
def bucket_sizes(request, monkeypatch):
    """Small test pools fit into one shard and one bucket: try them cut into many, too."""
    if request.param == "tiny":
        monkeypatch.setattr(ranking, "SHARD", 4)
        monkeypatch.setattr(ranking, "_FINE_ROWS", 1)
        monkeypatch.setattr(ranking, "_COARSE_ROWS", 3)
        monkeypatch.setattr(ranking, "_MANY_ROWS", 2)
