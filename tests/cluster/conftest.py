import pytest

pytest.importorskip("distributed")

from galaxy_al.cluster.connecting import connected


@pytest.fixture(scope="session")
def cluster():
    """Two workers in processes of their own."""
    with connected("local", n_workers=2) as client:
        yield client


@pytest.fixture
def client(cluster):
    """A client of the two workers; those that a test has killed are there again."""
    cluster.wait_for_workers(2, timeout=60)
    return cluster
