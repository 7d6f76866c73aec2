"""The audit of a project, when several people answer the same examples."""

from dataclasses import replace

import numpy as np

from galaxy_al.audit.sampling import Strata
from galaxy_al.labelling.audits import Beginning, ProjectAudit, begin_audit
from galaxy_al.labelling.log import Entry
from support.projects import small_project


def test_an_example_is_free_again_only_when_no_answer_is_left(tmp_path):
    project, _ = small_project(tmp_path, size=60)
    strata = Strata(np.zeros(60, dtype=np.intp), np.array([2]), np.array([[0.1, 0.1, 0.8]]))
    beginning = Beginning(strata, np.zeros((3, 3), dtype=np.int64))
    record = replace(begin_audit(project, beginning, 10, 0), number=1)
    audit, id = ProjectAudit(project, record, [], []), project.pool.ids[7]
    script = [
        (Entry("ann", "label", id, "dent", source="found", number=1), 59),
        (Entry("bob", "label", id, "dent", source="found", number=2), 59),
        (Entry("ann", "undo", id, undoes=1, number=3), 59),
        (Entry("bob", "undo", id, undoes=2, number=4), 60),
    ]
    for entry, n_free in script:
        audit.add(entry)
        assert audit.result().n_free.tolist() == [n_free]
