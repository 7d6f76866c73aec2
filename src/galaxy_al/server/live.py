"""Telling every open page what has changed, by server-sent events."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

_LEAST_PAUSE = 0.4  # seconds between two messages
_SHARE_OF_TIME = 0.05  # that may be spent on making them
_ALIVE_EVERY = 15.0
_END = ""


class Broadcast:
    """Makes a message when something has changed, once for everybody.

    Parameters
    ----------
    make
        The message; it is called in a thread.
    """

    def __init__(self, make: Callable[[], dict[str, Any]]) -> None:
        self._make = make
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed = asyncio.Event()
        self._subscribers: set[asyncio.Queue[str]] = set()

    def close(self) -> None:
        """End all streams: the server goes down. From the loop's own thread."""
        for queue in self._subscribers:
            queue.put_nowait(_END)

    def notify(self) -> None:
        """Something has changed; from any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the server is going down
                self._loop.call_soon_threadsafe(self._changed.set)

    async def run(self) -> None:
        """Send messages until cancelled."""
        self._loop = asyncio.get_running_loop()
        while True:
            await self._changed.wait()
            self._changed.clear()
            begin = time.perf_counter()
            if self._subscribers:
                text = json.dumps(await asyncio.to_thread(self._make))
                for queue in self._subscribers:
                    if queue.empty():  # whoever is slow waits for the one after
                        queue.put_nowait(text)
            spent = time.perf_counter() - begin
            await asyncio.sleep(max(_LEAST_PAUSE, spent / _SHARE_OF_TIME))

    async def events(self, still_here: Callable[[], None]) -> AsyncIterator[str]:
        """The messages for one page; ``still_here`` is called as long as it listens."""
        queue: asyncio.Queue[str] = asyncio.Queue()
        self._subscribers.add(queue)
        try:
            yield f"data: {json.dumps(await asyncio.to_thread(self._make))}\n\n"
            while True:
                still_here()
                try:
                    text = await asyncio.wait_for(queue.get(), _ALIVE_EVERY)
                    if text == _END:
                        return
                    yield f"data: {text}\n\n"
                except asyncio.TimeoutError:
                    yield ": still here\n\n"
        finally:
            self._subscribers.discard(queue)
