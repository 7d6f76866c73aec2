"""Sends the status to every open page after each change, as server-sent events."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

_LOGGER = logging.getLogger(__name__)
_LEAST_PAUSE, _MOST_PAUSE = 0.4, 5.0  # seconds between two messages
_SHARE_OF_TIME = 0.05  # spent on making them, at most
_ALIVE_EVERY = 15.0
_GRACE = 5.0  # seconds to come back
_END = ""


class Broadcast:
    """Makes one message after a change and sends it to all pages.

    Parameters
    ----------
    make
        Makes the message; called in a thread.
    leave
        Called with the name of an annotator who has had no page open for a while.
    """

    def __init__(self, make: Callable[[], str], leave: Callable[[str], None]) -> None:
        self._make, self._leave = make, leave
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed = asyncio.Event()
        self._subscribers: set[asyncio.Queue[str]] = set()
        self._pages: Counter[str] = Counter()

    def close(self) -> None:
        """End all streams before the server stops. Call it from the thread of the loop."""
        for queue in self._subscribers:
            queue.put_nowait(_END)

    def notify(self) -> None:
        """Something has changed. Call it from any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the server is stopping
                self._loop.call_soon_threadsafe(self._changed.set)

    async def run(self) -> None:
        """Send messages until cancelled."""
        self._loop = asyncio.get_running_loop()
        while True:
            await self._changed.wait()
            self._changed.clear()
            begin = time.perf_counter()
            if self._subscribers:
                await self._send()
            spent = time.perf_counter() - begin
            pause = min(spent / _SHARE_OF_TIME, _MOST_PAUSE)
            await asyncio.sleep(max(pause, _LEAST_PAUSE))

    async def _send(self) -> None:
        try:
            text = await asyncio.to_thread(self._make)
        except Exception:  # the next message may succeed
            _LOGGER.exception("The status could not be made.")
            return
        for queue in self._subscribers:
            while not queue.empty():  # a slow page gets the newest message only
                queue.get_nowait()
            queue.put_nowait(text)

    async def events(self, annotator: str) -> AsyncIterator[str]:
        """The messages for one page of an annotator."""
        queue: asyncio.Queue[str] = asyncio.Queue()
        self._subscribers.add(queue)
        self._pages[annotator] += 1
        try:
            yield f"data: {await asyncio.to_thread(self._make)}\n\n"
            while True:
                try:
                    text = await asyncio.wait_for(queue.get(), _ALIVE_EVERY)
                    if text == _END:
                        return
                    yield f"data: {text}\n\n"
                except asyncio.TimeoutError:
                    yield ": still here\n\n"
        finally:
            self._subscribers.discard(queue)
            self._pages[annotator] -= 1
            asyncio.get_running_loop().call_later(_GRACE, self._leave_if_closed, annotator)

    def _leave_if_closed(self, annotator: str) -> None:
        """A page that was reloaded or lost its connection for a moment is open again by now."""
        if self._pages[annotator] == 0:
            self._leave(annotator)
