"""Stores that are used from elsewhere, and take it in their own ways."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from typing import Any

from n00dles_testing.conformance.mutants.correct import JSONFiles


class _Async(JSONFiles):
    async def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        await self.enter()
        return super().load_or_create(run_id, inputs)

    async def save(self, run_id: str, context: Any) -> None:  # type: ignore[override]
        await self.enter()
        super().save(run_id, context)

    async def enter(self) -> None: ...


class BelongsToItsLoop(_Async):
    """Right: it says so at once."""

    loop: Any = None

    async def enter(self) -> None:
        self.loop = self.loop or asyncio.get_running_loop()
        if self.loop is not asyncio.get_running_loop():
            raise RuntimeError("this connection belongs to another event loop")


class WaitsForItsFirstLoop(_Async):
    """What it awaits is done by a task of the loop in which it was first used."""

    loop: Any = None

    async def enter(self) -> None:
        self.loop = self.loop or asyncio.get_running_loop()
        done = asyncio.Event()
        if self.loop is asyncio.get_running_loop():
            done.set()
        await done.wait()


class RefusesAFork(JSONFiles):
    """Right: it says so at once."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.pid = os.getpid()

    def read(self, run_id: str) -> Any:
        if self.pid != os.getpid():
            raise RuntimeError("opened before a fork")
        return super().read(run_id)


class DiesInAFork(RefusesAFork):
    def read(self, run_id: str) -> Any:
        if self.pid != os.getpid():
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().read(run_id)


class HangsInAFork(RefusesAFork):
    """A lock that a thread held, which the fork does not have."""

    def read(self, run_id: str) -> Any:
        if self.pid != os.getpid():
            threading.Event().wait()
        return super().read(run_id)


class ForgetsAfterAFork(JSONFiles):
    """Keeps what it has read, and never looks whether another process has gone on."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.cached: dict[str, Any] = {}

    def read(self, run_id: str) -> Any:
        if run_id not in self.cached:
            self.cached[run_id] = super().read(run_id)
        return self.cached[run_id]

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        super().write(run_id, record)
        self.cached[run_id] = record

    def delete(self, run_id: str) -> None:
        super().delete(run_id)
        self.cached.pop(run_id, None)


class RefusesItsOwner(JSONFiles):
    def save(self, run_id: str, context: Any) -> None:
        raise ValueError("no")
