"""What to look at again."""

from typing import Annotated

from fastapi import APIRouter, Query

from galaxy_al.labelling.project import Project
from galaxy_al.labelling.review import Item
from galaxy_al.server.rendering import show
from galaxy_al.server.routes.context import Annotator, TheService
from galaxy_al.server.schemas import Review, Reviewed, ReviewItem

_MOST = 200
_MOST_IN_A_GROUP = 24

router = APIRouter(tags=["review"])


@router.get("/api/review")
def review(
    service: TheService, annotator: Annotator, count: Annotated[int, Query(ge=1, le=_MOST)] = 50
) -> Review:
    """Labels to look at again, with what everybody answered.

    These are duplicates with different labels, disagreements, and suspected errors. Decide with
    `/api/label` and the source "review"; the label may stay as it is. Examples that you are still
    to be asked about are left out, because you must not see another answer before yours.
    """
    items = service.review(annotator)
    shown = [_item(service.project, item) for item in items[:count]]
    return Review(items=shown, n_items=len(items))


def _item(project: Project, item: Item) -> ReviewItem:
    examples = [
        Reviewed(
            example=show(project, project.find(one.id)),
            label=one.label,
            annotator=one.annotator,
            answers=dict(one.answers),
        )
        for one in item.examples[:_MOST_IN_A_GROUP]
    ]
    return ReviewItem(
        reason=item.reason,
        sentence=item.sentence,
        examples=examples,
        suggested=item.suggested,
        error=item.error,
    )
