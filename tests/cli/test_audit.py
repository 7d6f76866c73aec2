"""`galaxy-al audit`: begin an audit, and read what it says."""

import numpy as np
import pytest

from galaxy_al.errors import GalaxyError
from galaxy_al.labelling.project import LOCK_FILE, open_project
from galaxy_al.labelling.service import Service
from galaxy_al.system.files import locked
from support.commands import init, run
from support.projects import blobs


@pytest.fixture
def labeled(tmp_path):
    """A project with 30 labels, and the true classes."""
    embeddings, names = blobs()
    np.save(tmp_path / "pool.npy", embeddings)
    init(tmp_path)
    label(tmp_path / "project", names, 30)
    return tmp_path / "project", names


def label(folder, names, count):
    service = Service(open_project(folder))
    for _ in range(count):
        id = service.next("ann").id
        service.label("ann", {id: names[int(id)]})
    service.close()


def test_an_audit_is_begun_answered_and_read(labeled):
    folder, names = labeled
    begun = run("audit", folder, "--labels", 40).output.splitlines()
    assert begun[0].endswith("0 of 40 random examples answered.")
    assert begun[-1] == f"The next questions are the audit's. Next: galaxy-al label {folder}"
    label(folder, names, 42)
    before = (folder / "labels.sqlite").read_bytes()
    lines = run("audit", folder).output.splitlines()
    assert (folder / "labels.sqlite").read_bytes() == before
    assert lines[0].endswith("40 of 40 random examples answered.")
    assert lines[1].startswith("scratch: about ")
    assert lines[2].startswith("  Decisions: precision ")
    assert lines[-2].startswith("Balanced accuracy of the model: ")
    assert lines[-1] == "Each interval holds the truth with 95% confidence, whenever you look."
    more = run("audit", folder, "--labels", 10, "--mixed").output.splitlines()
    assert more[0].endswith("40 of 50 random examples answered.")
    again = run("audit", folder, "--labels", 10, "--again").output.splitlines()
    assert again[0].endswith("0 of 10 random examples answered.")


def test_what_cannot_be_done_is_said_in_one_line(labeled):
    folder, _ = labeled
    with pytest.raises(GalaxyError, match=r"has no audit yet. Begin one with --labels 150\."):
        run("audit", folder)
    with locked(folder / LOCK_FILE), pytest.raises(GalaxyError, match="The page is open"):
        run("audit", folder, "--labels", 10)
    assert "need --labels" in run("audit", folder, "--mixed", fails=True).output
    with pytest.raises(GalaxyError, match="is not a galaxy-al project"):
        run("audit", folder / "missing", "--labels", 10)
