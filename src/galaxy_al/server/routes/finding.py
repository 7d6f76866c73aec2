"""Searches: the likeliest of a class, examples like another one, and a walk."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from galaxy_al.server.rendering import show
from galaxy_al.server.routes.context import Annotator, TheService
from galaxy_al.server.schemas import Clusters, Found, Id
from galaxy_al.server.search import Finder, Finding

_MOST_FOUND = 200

router = APIRouter(tags=["finding"])


async def _finder(request: Request) -> Finder:
    finder: Finder = request.app.state.finder
    return finder


TheFinder = Annotated[Finder, Depends(_finder)]
Count = Annotated[int, Query(ge=1, le=_MOST_FOUND)]
Text = Annotated[str, Query(min_length=1, max_length=10_000)]


def _shown(service: TheService, found: Finding) -> Found:
    examples = [show(service.project, id) for id in found.ids]
    return Found(examples=examples, proba=found.proba)


@router.get("/api/likeliest")
def find_likeliest(
    service: TheService, finder: TheFinder, annotator: Annotator, label: str, count: Count = 24
) -> Found:
    """The unlabelled examples that are most likely of a class."""
    return _shown(service, finder.likeliest(label, count))


@router.get("/api/like")
def find_like(
    service: TheService, finder: TheFinder, annotator: Annotator, id: Id, count: Count = 24
) -> Found:
    """The unlabelled examples that are most like another example."""
    return _shown(service, finder.like(id, count))


@router.get("/api/like-text")
def find_like_text(
    service: TheService, finder: TheFinder, annotator: Annotator, text: Text, count: Count = 24
) -> Found:
    """The unlabelled examples that are most like a text."""
    return _shown(service, finder.like_text(text, count))


@router.post("/api/like-image")
async def find_like_image(
    service: TheService,
    finder: TheFinder,
    annotator: Annotator,
    request: Request,
    count: Count = 24,
) -> Found:
    """The unlabelled examples that are most like an image. Send the file as the body."""
    data = await request.body()
    return await asyncio.to_thread(lambda: _shown(service, finder.like_image(data, count)))


@router.get("/api/walk")
def walk(
    service: TheService,
    finder: TheFinder,
    annotator: Annotator,
    id: Id | None = None,
    radius: Annotated[int, Query(ge=1)] = 1000,
) -> Clusters:
    """The clusters of the pool, or of the examples around one. Continue with one of these."""
    clusters = finder.walk(id, radius)
    examples = [show(service.project, cluster.centre) for cluster in clusters]
    return Clusters(examples=examples, sizes=[cluster.size for cluster in clusters])
