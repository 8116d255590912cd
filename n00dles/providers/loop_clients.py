"""One SDK client for each event loop, closed with it.

A client's connections belong to the loop that opened them. `run` makes a new loop each time, so a client that is kept
for longer ends in "Event loop is closed" or in a ResourceWarning about a socket that nobody closed.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

__all__ = ["LoopClients"]

Client = TypeVar("Client")


@dataclass(slots=True)
class _Held(Generic[Client]):
    client: Client
    closing: AsyncGenerator[None, None]
    environment: frozenset[tuple[str, str]]
    borrowers: int = 0


class LoopClients(Generic[Client]):
    """Makes a client at the first use in a loop, and closes it in that loop.

    `asyncio.run` finishes every asynchronous generator that is still open before it closes its loop; each client is
    held by one, so that it is closed in its own loop even if nobody calls `aclose`. When an environment variable that
    begins with `prefix` has changed, the next call gets a new client: the SDK reads them only once.
    """

    def __init__(self, prefix: str, make: Callable[[], Client], close: Callable[[Client], Awaitable[None]]) -> None:
        self._prefix = prefix
        self._make = make
        self._close = close
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, _Held[Client]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    @asynccontextmanager
    async def borrow(self) -> AsyncIterator[Client]:
        """Give the running loop's client for one call. Raises whatever making it raises."""
        held = await self._of_this_loop()
        held.borrowers += 1
        try:
            yield held.client
        finally:
            held.borrowers -= 1

    async def aclose(self) -> None:
        """Close the running loop's client, unless a call is under way: then it closes with its loop, or next time."""
        held = self._held.get(asyncio.get_running_loop())
        if held is not None and not held.borrowers:
            await held.closing.aclose()

    async def _of_this_loop(self) -> _Held[Client]:
        loop = asyncio.get_running_loop()
        environment = frozenset(item for item in os.environ.items() if item[0].startswith(self._prefix))
        held = self._held.get(loop)
        if held is not None and held.environment != environment:
            await self.aclose()
            held = self._held.get(
                loop
            )  # still the old one if it is in use, or one that another call has made meanwhile
        if held is None or held.environment != environment:
            client = self._make()
            held = _Held(client, self._close_with(loop, client), environment)
            with self._lock:
                for closed in [other for other in self._held if other.is_closed()]:
                    del self._held[closed]
                self._held[loop] = held
            await anext(held.closing)  # from here on the loop knows the generator
        return held

    async def _close_with(self, loop: asyncio.AbstractEventLoop, client: Client) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            with self._lock:
                held = self._held.get(loop)
                if held is not None and held.client is client:
                    del self._held[loop]
            await self._close(client)
