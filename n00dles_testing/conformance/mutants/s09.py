"""Stores that break S09: overlapping saves lose no acknowledged node."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from .correct import FilesWithRevisions, JSONFiles, NotStoredError, StaleError, merged

__all__ = ["MergesWithWhatItReadBefore", "WritesInAnyOrder"]


class WritesInAnyOrder(FilesWithRevisions):
    """Copies the context when it is called, then waits for a connection; the pool serves the newest waiter first.

    A save that has waited long writes an older copy over a newer one, of the same context: the fence lets it through.
    """

    breaks: ClassVar[str | None] = "S09"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.waiting: list[dict[str, Any]] = []

    async def save(self, run_id: str, context: Any) -> None:  # type: ignore[override]
        """Copy, wait for a turn, and write the copy."""
        copied = self.kept(context)
        self.waiting.append(copied)
        await asyncio.sleep(0)
        while self.waiting[-1] is not copied:  # noqa: ASYNC110 - a pool in two lines
            await asyncio.sleep(0)
        self.waiting.pop()
        with self.lock:
            stored = self.read(run_id)
            if stored is not None and self.has_landed(context, stored):
                context.revision = stored["revision"]
            if stored is None or not self.continues(context, stored):
                raise StaleError(run_id, stored)
            count = {"revision": stored["revision"] + 1, "incarnation": stored["incarnation"]}
            self.write(run_id, {**copied, **count})
            context.revision = count["revision"]


class MergesWithWhatItReadBefore(JSONFiles):
    """Reads, gives way, and writes: the last one has not read what the others wrote (google/adk-python #4751)."""

    breaks: ClassVar[str | None] = "S09"

    async def save(self, run_id: str, context: Any) -> None:  # type: ignore[override]
        """Merge with what was stored when the save began."""
        stored = self.read(run_id)
        await asyncio.sleep(0)
        with self.lock:
            if stored is None or self.read(run_id) is None:
                raise NotStoredError(run_id)
            self.write(run_id, merged(stored, self.kept(context)))
