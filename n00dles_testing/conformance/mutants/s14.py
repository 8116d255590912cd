"""Stores that break S14: a cancelled save is done or not done, never late."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar

from .correct import JSONFiles, merged

__all__ = ["AnswersTheQuestionBefore", "SavesInTheBackground", "SavesLaterIfNobodyElseDoes"]

_SOON = 0.05
_STEPS_OF_A_POOL = 12


class SavesInTheBackground(JSONFiles):
    """Hands a save that is cancelled at its end to the background, so that nothing is lost: it lands behind newer ones.

    The kind of langchain-ai/langgraph PR #6701. A save that still waits for a connection is just given up.
    """

    breaks: ClassVar[str | None] = "S14"

    async def save(self, run_id: str, context: Any) -> None:  # type: ignore[override]
        """Wait for a connection, then for the turn to write; save later if that was cancelled."""
        record = self.kept(context)
        for _ in range(_STEPS_OF_A_POOL):
            await asyncio.sleep(0)
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            asyncio.get_running_loop().call_later(_SOON, self.save_record, run_id, record)
            raise
        super().save(run_id, context)

    def save_record(self, run_id: str, record: dict[str, Any]) -> None:
        """Merge what was to be saved with what is stored now."""
        with self.lock:
            stored = self.read(run_id)
            if stored is not None:
                self.write(run_id, merged(stored, record))


class SavesLaterIfNobodyElseDoes(JSONFiles):
    """Makes a save that was cancelled a moment later, and drops it as soon as there is a newer one, or a delete.

    So nothing lands behind a newer save. But whoever has looked meanwhile was shown a state that then changed by
    itself, as with a thread that goes on with the work of a cancelled `await asyncio.to_thread(...)`.
    """

    breaks: ClassVar[str | None] = "S14"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.later: dict[str, dict[str, Any]] = {}

    async def save(self, run_id: str, context: Any) -> None:  # type: ignore[override]
        """Wait for the turn to write; leave the save for later if that was cancelled."""
        self.later.pop(run_id, None)
        record = self.kept(context)
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.later[run_id] = record
            asyncio.get_running_loop().call_later(_SOON, self.save_what_is_left, run_id)
            raise
        super().save(run_id, context)

    def save_what_is_left(self, run_id: str) -> None:
        """Merge what was to be saved with what is stored, unless somebody has saved since."""
        with self.lock:
            record, stored = self.later.pop(run_id, None), self.read(run_id)
            if record is not None and stored is not None:
                self.write(run_id, merged(stored, record))

    def delete(self, run_id: str) -> None:
        """Delete the run, and what was left for later."""
        with self.lock:
            self.later.pop(run_id, None)
            super().delete(run_id)


class AnswersTheQuestionBefore(JSONFiles):
    """One connection, over which questions and replies go in turn: the reply to a cancelled save stays in it.

    Whoever asks next gets that, and everybody after it the reply to the question before. S17 cancels saves, too.
    """

    breaks: ClassVar[str | None] = "S14"
    also_breaks: ClassVar[tuple[str, ...]] = ("S17",)

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.thread = threading.get_ident()
        self.replies: deque[Any] = deque()

    async def ask(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """Send a question; read the next reply."""
        if self.thread != threading.get_ident():
            raise RuntimeError("the connection belongs to another thread")
        try:
            self.replies.append(method(*arguments))
        except Exception as error:
            self.replies.append(error)
        await asyncio.sleep(0)
        reply = self.replies.popleft()
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Ask for the run."""
        return await self.ask(super().load_or_create, run_id, inputs)

    async def save(self, run_id: str, context: Any) -> None:  # type: ignore[override]
        """Send the run."""
        await self.ask(super().save, run_id, context)

    async def delete(self, run_id: str) -> None:  # type: ignore[override]
        """Send the id."""
        await self.ask(super().delete, run_id)
