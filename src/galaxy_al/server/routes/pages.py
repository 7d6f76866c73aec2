"""The pages, and signing in."""

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import FileResponse, RedirectResponse

from galaxy_al.server.auth import Access, clean_name
from galaxy_al.server.schemas import SignedIn, SignIn

STATIC = Path(__file__).parents[1] / "static"

router = APIRouter()


async def _access(request: Request) -> Access:
    access: Access = request.app.state.access
    return access


TheAccess = Annotated[Access, Depends(_access)]


def _page(name: str) -> FileResponse:
    return FileResponse(STATIC / name, headers={"Cache-Control": "no-cache"})


def _signed_in(access: Access, name: str | None) -> SignedIn:
    link = None if name is None else f"/join/{access.sign(name)}"
    return SignedIn(name=name, link=link, needs_token=access.needs_token)


@router.get("/", include_in_schema=False)
async def show_page() -> FileResponse:
    """The labelling page."""
    return _page("index.html")


@router.get("/api", include_in_schema=False)
async def show_api() -> FileResponse:
    """The description of the API."""
    return _page("api.html")


@router.get("/join/{signed}", include_in_schema=False)
async def join(access: TheAccess, signed: str) -> Response:
    """Sign in by a personal link."""
    name = access.name_of(signed)
    if name is None:
        raise HTTPException(403, "This link does not belong to this project.")
    response = RedirectResponse("/", status_code=303)
    access.remember(response, name)
    return response


@router.post("/api/sign-in", tags=["sign in"])
async def sign_in(access: TheAccess, wanted: SignIn, response: Response) -> SignedIn:
    """Enter your name. A cookie keeps you signed in."""
    if not access.may_sign_in(wanted.token):
        raise HTTPException(403, "That is not the token that the server printed.")
    name = clean_name(wanted.name)
    access.remember(response, name)
    return _signed_in(access, name)


@router.get("/api/me", tags=["sign in"])
async def show_me(access: TheAccess, request: Request) -> SignedIn:
    """Your name; null before you sign in."""
    return _signed_in(access, access.visitor(request))


@router.post("/api/sign-out", tags=["sign in"], status_code=204)
async def sign_out(access: TheAccess, response: Response) -> None:
    """Sign out."""
    access.forget(response)
