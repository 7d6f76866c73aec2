"""Telling every open page what has changed, by server-sent events."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

_LEAST_PAUSE = 0.4  # seconds between two messages
_SHARE_OF_TIME = 0.05  # that may be spent on making them
_ALIVE_EVERY = 15.0
_GRACE = 5.0
_END = ""


class Broadcast:
    """Makes a message when something has changed, once for everybody.

    Parameters
    ----------
    make
        The message; it is called in a thread.
    gone
        Is called with the name of an annotator of whom no page has been open for a while.
    """

    def __init__(self, make: Callable[[], dict[str, Any]], gone: Callable[[str], None]) -> None:
        self._make, self._gone = make, gone
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed = asyncio.Event()
        self._subscribers: set[asyncio.Queue[str]] = set()
        self._pages: Counter[str] = Counter()

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
                await self._send()
            spent = time.perf_counter() - begin
            await asyncio.sleep(max(_LEAST_PAUSE, spent / _SHARE_OF_TIME))

    async def _send(self) -> None:
        try:
            text = json.dumps(await asyncio.to_thread(self._make))
        except Exception:  # one message less, and the next may be well
            logging.getLogger(__name__).exception("The status could not be made.")
            return
        for queue in self._subscribers:
            while not queue.empty():  # whoever is slow gets the newest only
                queue.get_nowait()
            queue.put_nowait(text)

    async def events(self, annotator: str) -> AsyncIterator[str]:
        """The messages for one page of an annotator."""
        queue: asyncio.Queue[str] = asyncio.Queue()
        self._subscribers.add(queue)
        self._pages[annotator] += 1
        try:
            yield f"data: {json.dumps(await asyncio.to_thread(self._make))}\n\n"
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
            asyncio.get_running_loop().call_later(_GRACE, self._perhaps_gone, annotator)

    def _perhaps_gone(self, annotator: str) -> None:
        """A page that was reloaded, or whose line was cut for a moment, is here again."""
        if self._pages[annotator] == 0:
            self._gone(annotator)
