"""Which runs a worker lets work beside each other: a run that may be what ended its workers works alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from .context import PipelineContext

__all__ = ["SUSPECT_LIVES", "Places", "is_suspect"]

SUSPECT_LIVES = 2
"""Lives in a row that ended without a completed node, after which a run is a suspect."""


def is_suspect(context: PipelineContext) -> bool:
    """Whether the run may be what has ended its workers, rather than what was beside it."""
    return context.stalled >= SUSPECT_LIVES


class Places:
    """A node that kills its process takes along what runs beside it, and each of those seems to do the same.

    So suspects work one at a time, and with nothing beside them: only the one that is to blame goes on dying, and comes
    to the end of its lives. One that waits for its turn has not begun a life.
    """

    def __init__(self) -> None:
        self._working = 0
        self._is_one_alone = False
        self._suspects = 0
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def has_suspects(self) -> bool:
        """Whether a suspect works or waits, so that nothing more should be begun."""
        return self._suspects > 0

    @asynccontextmanager
    async def of(self, context: PipelineContext) -> AsyncIterator[None]:
        """`async with`: wait until the run may work, and have its place while it does."""
        alone = is_suspect(context)
        self._suspects += alone
        try:
            await self._wait_until(lambda: not self._is_one_alone and not (alone and self._working))
            self._working += 1
            self._is_one_alone = alone
            try:
                yield
            finally:
                self._working -= 1
                self._is_one_alone = False
        finally:
            self._suspects -= alone
            for waiter in self._waiting:
                if not waiter.done():
                    waiter.set_result(None)
            self._waiting.clear()

    async def _wait_until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter
