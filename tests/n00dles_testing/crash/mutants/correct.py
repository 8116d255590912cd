"""Correct executors that are built otherwise than that of n00dles: no clause may have anything to say about them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest.mock import patch

from n00dles.attempts import Worker
from n00dles.checkpointing import Checkpointer
from n00dles.threads import wait_out
from tests.n00dles_testing.crash.mutants.base import Executor, Life


class CancelsSiblings(Executor):
    """Cancels the siblings of a failing member, where n00dles awaits them."""

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        return patch("n00dles.executor._all", _all_or_none)


class RunsMembersInTurn(Executor):
    """Runs the members of a fan-out one after the other."""

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        return patch("n00dles.executor._all", _in_turn)


class SavesByAWriter(Executor):
    """Hands saves to a writer, which begins a moment later with whatever there is by then."""

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        return patch("n00dles.executor.Checkpointer", _Writer)


class SavesTwice(Executor):
    """Saves everything twice."""

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        return patch("n00dles.executor.Checkpointer", _Careful)


class SavesBeforeEachAttempt(Executor):
    """Saves that an attempt is about to be made."""

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        attempt_of = Worker._attempt

        async def attempt(self: Worker, *rest: Any) -> Any:
            await self._checkpointer.save()
            return await attempt_of(self, *rest)

        return patch.object(Worker, "_attempt", attempt)


class TriesASaveOnce(Executor):
    """Raises what the store raises, at once."""

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        return patch("n00dles.checkpointing._is_transient", lambda error: False)


class KnowsNoKeys(Executor):
    """Offers no idempotency keys."""

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        return patch("n00dles.attempts.node_call", lambda run_id, node, agent: nullcontext())


class _Writer(Checkpointer):
    async def save(self) -> None:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await super().save()


class _Careful(Checkpointer):
    async def save(self) -> None:
        await super().save()
        await super().save()


async def _all_or_none(members: list[Coroutine[Any, Any, Any]]) -> list[Any]:
    tasks = [asyncio.ensure_future(member) for member in members]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await wait_out(*tasks)


async def _in_turn(members: list[Coroutine[Any, Any, Any]]) -> list[Any]:
    try:
        return [await member for member in members]
    finally:
        for member in members:
            member.close()


CORRECT: tuple[Executor, ...] = (
    Executor(),
    CancelsSiblings(),
    RunsMembersInTurn(),
    SavesByAWriter(),
    SavesTwice(),
    SavesBeforeEachAttempt(),
    TriesASaveOnce(),
    KnowsNoKeys(),
)
