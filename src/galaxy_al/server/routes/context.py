"""What routes get from the application."""

from typing import Annotated

from fastapi import Depends, Request

from galaxy_al.labelling.service import Service
from galaxy_al.server.auth import signed_in
from galaxy_al.server.ending import Ending


async def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def _ending(request: Request) -> Ending:
    ending: Ending = request.app.state.ending
    return ending


Annotator = Annotated[str, Depends(signed_in)]
TheService = Annotated[Service, Depends(_service)]
TheEnding = Annotated[Ending, Depends(_ending)]
