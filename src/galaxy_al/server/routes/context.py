"""What routes get from the application."""

from typing import Annotated

from fastapi import Depends, Request

from galaxy_al.labelling.service import Service
from galaxy_al.server.auth import signed_in


async def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Annotator = Annotated[str, Depends(signed_in)]
TheService = Annotated[Service, Depends(_service)]
