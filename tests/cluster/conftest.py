import pytest

pytest.importorskip("distributed")

from galaxy_al.cluster.connecting import connected


@pytest.fixture(scope="session")
def client():
    """Two workers in processes of their own."""
    with connected("local", n_workers=2) as client:
        yield client
