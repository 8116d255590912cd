"""Stores that break S09: overlapping saves lose no acknowledged node."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, ClassVar

from .correct import FilesWithRevisions, JSONFiles, NotStoredError, StaleError, merged

__all__ = ["LeavesItToTheNextSave", "MergesWithWhatItReadBefore", "WritesInAnyOrder"]


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


class LeavesItToTheNextSave(JSONFiles):
    """Writes a run once for all saves that overlap: those that begin meanwhile are held in memory, for the next one.

    It loads what it holds as well, so that nothing is missing until it is opened again.
    """

    breaks: ClassVar[str | None] = "S09"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.held: dict[str, dict[str, Any]] = {}
        self.under_way: set[tuple[str, int]] = set()

    async def save(self, run_id: str, context: Any) -> None:  # type: ignore[override]
        """Write the run, or hold it if this thread is just writing it."""
        saving = (run_id, threading.get_ident())
        if saving in self.under_way:
            self.hold(run_id, context)
            return
        self.under_way.add(saving)
        try:
            with self.lock:
                super().save(run_id, context)
                self.held.pop(run_id, None)
            await asyncio.sleep(0)
        finally:
            self.under_way.remove(saving)

    def hold(self, run_id: str, context: Any) -> None:
        """Keep it in memory."""
        with self.lock:
            stored = self.read(run_id)
            if stored is None:
                raise NotStoredError(run_id)
            self.held[run_id] = merged(stored, self.kept(context))

    def read(self, run_id: str) -> Any:
        """Return what is stored, together with what is held."""
        stored = super().read(run_id)
        return merged(stored, self.held[run_id]) if stored is not None and run_id in self.held else stored

    def delete(self, run_id: str) -> None:
        """Remove the file, and what is held."""
        with self.lock:
            super().delete(run_id)
            self.held.pop(run_id, None)
