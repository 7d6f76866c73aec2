"""The audit of a project, when several people answer the same examples."""

import numpy as np

from galaxy_al.labelling.audit_beginning import ids_digest
from galaxy_al.labelling.audit_records import AuditRecord, PlanRecord, packed
from galaxy_al.labelling.audits import ProjectAudit
from galaxy_al.labelling.log import Entry
from support.projects import small_project


def test_an_example_is_free_again_only_when_no_answer_is_left(tmp_path):
    project, _ = small_project(tmp_path, size=60)
    record = AuditRecord(
        classes=project.classes,
        size=60,
        digest=ids_digest(project.pool.ids),
        after=0,
        random_after=0,
        strata=packed(np.zeros(60, dtype=np.intp)),
        decided=(2,),
        expected=((0.1, 0.1, 0.8),),
        number=1,
    )
    audit, id = ProjectAudit(project, record, PlanRecord(1, 10, 1.0), [], []), project.pool.ids[7]
    script = [
        (Entry("ann", "label", id, "dent", source="found", number=1), 59),
        (Entry("bob", "label", id, "dent", source="found", number=2), 59),
        (Entry("ann", "undo", id, undoes=1, number=3), 59),
        (Entry("bob", "undo", id, undoes=2, number=4), 60),
    ]
    for entry, n_free in script:
        audit.add(entry)
        assert audit.facts().result.n_free.tolist() == [n_free]
