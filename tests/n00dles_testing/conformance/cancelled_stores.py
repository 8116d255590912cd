"""Stores that take a cancellation in their own ways."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from n00dles_testing.conformance.mutants.correct import JSONFiles, merged, record_of

SLOW = 0.5
WORK = 0.05


class _Async(JSONFiles):
    async def save(self, run_id: str, context: Any) -> None:  # type: ignore[override]
        await self.write_soon(run_id, record_of(context))

    async def write_soon(self, run_id: str, record: dict[str, Any]) -> None:
        raise NotImplementedError

    def write_now(self, run_id: str, record: dict[str, Any]) -> None:
        with self.lock:
            self.write(run_id, merged(self.read(run_id), record))


class WaitsForItsThread(_Async):
    """Right: the cancellation goes on when the thread has ended."""

    async def write_soon(self, run_id: str, record: dict[str, Any]) -> None:
        job = asyncio.ensure_future(asyncio.to_thread(self.write_now, run_id, record))
        try:
            await asyncio.shield(job)
        except asyncio.CancelledError:
            await asyncio.wait({job})
            raise


class LeavesItsThread(_Async):
    """The thread goes on, and what it has read is older than what it writes over."""

    async def write_soon(self, run_id: str, record: dict[str, Any]) -> None:
        await asyncio.to_thread(self.write_slowly, run_id, record)

    def write_slowly(self, run_id: str, record: dict[str, Any]) -> None:
        """Take as long as a newer save does, if there is one."""
        deadline = time.monotonic() + SLOW
        while "b" in record["completed"] and "c" not in record["completed"] and time.monotonic() < deadline:
            if "c" in self.read(run_id)["completed"]:
                break
            time.sleep(0.01)
        self.write(run_id, record)


class LandsFromItsThread(_Async):
    """The thread goes on with the work, as `asyncio.to_thread` has it, and writes the whole record, as it was given."""

    async def write_soon(self, run_id: str, record: dict[str, Any]) -> None:
        await asyncio.to_thread(self.write_whole, run_id, record)

    def write_whole(self, run_id: str, record: dict[str, Any]) -> None:
        time.sleep(WORK)
        with self.lock:
            self.write(run_id, record)


class ReturnsAllTheSame(_Async):
    """Takes no notice of a cancellation, and acknowledges what is done."""

    async def write_soon(self, run_id: str, record: dict[str, Any]) -> None:
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.write_now(run_id, record)
            return
        self.write_now(run_id, record)


class ReturnsWithoutSaving(_Async):
    async def write_soon(self, run_id: str, record: dict[str, Any]) -> None:
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            return
        self.write_now(run_id, record)


class WritesInTwoSteps(_Async):
    async def write_soon(self, run_id: str, record: dict[str, Any]) -> None:
        nothing = dict.fromkeys(record["completed"])
        self.write_now(run_id, {**record, "completed": nothing})
        await asyncio.sleep(0)
        self.write_now(run_id, record)


class StaysLocked(JSONFiles):
    """Gives its lock back after a save, and after an error; `except Exception` does not catch a cancellation."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.turn = asyncio.Lock()

    async def save(self, run_id: str, context: Any) -> None:  # type: ignore[override]
        await self.turn.acquire()
        try:
            await asyncio.sleep(0)
            super().save(run_id, context)
        except Exception:
            self.turn.release()
            raise
        self.turn.release()


class NeverEnds(_Async):
    async def write_soon(self, run_id: str, record: dict[str, Any]) -> None:
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            await asyncio.Event().wait()
        self.write_now(run_id, record)


class RaisesItsOwnError(_Async):
    """Right: what is done or not may be told by any error."""

    async def write_soon(self, run_id: str, record: dict[str, Any]) -> None:
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            raise ConnectionError("the connection was given up") from None
        self.write_now(run_id, record)


class GivesWayToNothing(_Async):
    async def write_soon(self, run_id: str, record: dict[str, Any]) -> None:
        self.write_now(run_id, record)
