"""Searches: the likeliest of a class, examples like another one, and a walk."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from galaxy_al.server.auth import signed_in
from galaxy_al.server.schemas import Clusters, Found, Id
from galaxy_al.server.search import Finder

_MOST_FOUND = 200

router = APIRouter(tags=["finding"], dependencies=[Depends(signed_in)])


async def _finder(request: Request) -> Finder:
    finder: Finder = request.app.state.finder
    return finder


TheFinder = Annotated[Finder, Depends(_finder)]
Count = Annotated[int, Query(ge=1, le=_MOST_FOUND)]
Text = Annotated[str, Query(min_length=1, max_length=10_000)]
Radius = Annotated[int, Query(ge=1)]


@router.get("/api/likeliest")
def find_likeliest(finder: TheFinder, label: str, count: Count = 24) -> Found:
    """The unlabelled examples that are most likely of a class."""
    return finder.likeliest(label, count)


@router.get("/api/like")
def find_like(finder: TheFinder, id: Id, count: Count = 24) -> Found:
    """The unlabelled examples that are most like another example."""
    return finder.like(id, count)


@router.get("/api/like-text")
def find_like_text(finder: TheFinder, text: Text, count: Count = 24) -> Found:
    """The unlabelled examples that are most like a text."""
    return finder.like_text(text, count)


@router.post("/api/like-image")
async def find_like_image(finder: TheFinder, request: Request, count: Count = 24) -> Found:
    """The unlabelled examples that are most like an image. Send the file as the body."""
    return await asyncio.to_thread(finder.like_image, await request.body(), count)


@router.get("/api/walk")
def walk(finder: TheFinder, id: Id | None = None, radius: Radius = 1000) -> Clusters:
    """The clusters of the pool, or of the examples around one. Continue with one of these."""
    return finder.walk(id, radius)
