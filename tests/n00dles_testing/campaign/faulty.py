"""Executors with one fault each that shows in one way of carrying a run on, or between two runs, and not in others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import n00dles
from n00dles import PipelineContext, RunResult
from n00dles.checkpointing import Checkpointer
from n00dles.errors import RunLockedError, StaleContextError
from n00dles.idempotency import node_call
from tests.n00dles_testing.crash.mutants.base import Around, Executor, Life
from tests.n00dles_testing.crash.mutants.identity import comparing_nothing


class RunsADeadRunAnew(Executor):
    """Pays again for a run that died when it is carried on with `run`; `resume` is right."""

    async def live(self, life: Life) -> RunResult:
        found = await life.record()
        if life.inputs is not None and found is not None and found.status == "running":
            # Whoever works on the run has its lease.
            try:
                if hasattr(life.store, "acquire"):
                    await life.store.release(await life.store.acquire(life.run_id, "me", 30))
            except RunLockedError:
                return await super().live(life)
            await life.store.delete(life.run_id)
        return await super().live(life)


class RunsAFailedRunAnew(Executor):
    """Pays again for a run that failed when it is carried on with `run`."""

    async def live(self, life: Life) -> RunResult:
        found = await life.record()
        if life.inputs is not None and found is not None and found.status == "failed":
            await life.store.delete(life.run_id)
        return await super().live(life)


class ResumesWithoutALease(Executor):
    """Holds the run in `run`; in `resume` it takes no lease, and its saves win over newer ones."""

    async def live(self, life: Life) -> RunResult:
        if life.inputs is not None:
            return await super().live(life)
        return await n00dles.aresume(life.pipeline, life.run_id, store=_Unfenced(life.store), observers=life.observers)


class _Unfenced(Around):
    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        try:
            await self.inner.save(run_id, ctx)
        except StaleContextError:
            stored = await self.inner.load(run_id)
            ctx.revision, ctx.incarnation = stored.revision, stored.incarnation
            await self.inner.save(run_id, ctx)


class GivesAllRunsOneKey(Executor):
    """Makes the idempotency key of the node alone."""

    def changes(self, life: Life) -> Any:
        return patch("n00dles.attempts.node_call", lambda run_id, node, agent: node_call("", node, agent))


class ComparesNoDeadRun(Executor):
    """Refuses a changed pipeline after a failure and after an end, and not after a kill."""

    async def live(self, life: Life) -> RunResult:
        found = await life.record()
        is_dead = found is not None and found.status == "running"
        with comparing_nothing() if is_dead else nullcontext():
            return await super().live(life)


class DropsInputsThatAreNothing(Executor):
    """Resumes without the inputs that are None, False or 0."""

    async def live(self, life: Life) -> RunResult:
        if life.inputs is not None:
            return await super().live(life)
        return await n00dles.aresume(
            life.pipeline, life.run_id, store=_NoNothing.put(life.store), observers=life.observers
        )


class _NoNothing(Around):
    def loaded(self, found: PipelineContext) -> PipelineContext:
        found.inputs = {name: value for name, value in found.inputs.items() if value or isinstance(value, str)}
        return found


class ForgetsInLongRuns(Executor):
    """Calls the first node again in a run that has more than five complete."""

    async def live(self, life: Life) -> RunResult:
        found = await life.record()
        if found is None or found.status != "running" or len(found.order) <= _FIVE:
            return await super().live(life)
        first, seen, real = found.order[0], set[str](), PipelineContext.is_complete

        def is_complete(context: PipelineContext, node: str) -> bool:
            if node == first and node not in seen:
                seen.add(node)
                return False
            return real(context, node)

        with patch.object(PipelineContext, "is_complete", is_complete):
            return await super().live(life)


_FIVE = 5


class KeepsAttemptsOnItself(Executor):
    """Keeps what attempts were spent on the object, and stores that there were none."""

    def __init__(self) -> None:
        self.spent: dict[tuple[str, str], int] = {}

    def around(self, store: Any) -> Any:
        spent = self.spent

        class Keeping(Around):
            async def load(self, run_id: str) -> PipelineContext | None:
                found: PipelineContext | None = await self.inner.load(run_id)
                if found is None:
                    return None
                for name, record in found.nodes.items():
                    record.spent = spent.get((found.incarnation, name), 0)
                return found

            async def save(self, run_id: str, ctx: PipelineContext) -> None:
                for name, record in ctx.nodes.items():
                    spent[ctx.incarnation, name] = record.spent
                await self.inner.save(run_id, ctx)

        return Keeping.put(store)


class GoesOnWhenCancelledInASave(Executor):
    """Takes a cancellation that comes in a save for a save that failed."""

    @contextmanager
    def changes(self, life: Life) -> Iterator[None]:
        real = Checkpointer._save_now

        async def save_now(saver: Checkpointer) -> None:
            try:
                await real(saver)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                assert task is not None
                task.uncancel()
                await real(saver)

        with patch.object(Checkpointer, "_save_now", save_now):
            yield


class SavesAfterItsReturn(Executor):
    """Leaves the last save to a task, and returns."""

    @contextmanager
    def changes(self, life: Life) -> Iterator[None]:
        tasks = set[asyncio.Task[None]]()

        async def save_now(saver: Checkpointer) -> None:
            async def later() -> None:
                await asyncio.sleep(0.001)
                await _SAVE_NOW(saver)

            if saver._context.status != "finished":
                await _SAVE_NOW(saver)
                return
            task = asyncio.ensure_future(later())
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        try:
            with patch.object(Checkpointer, "_save_now", save_now):
                yield
        finally:
            # Of two lives at once, the one that ends last would put back what the other had put there.
            setattr(Checkpointer, "_save_now", _SAVE_NOW)  # noqa: B010 - mypy takes no method for a place


_SAVE_NOW = Checkpointer._save_now


class CancelsItself(Executor):
    """Ends a resume with a cancellation that nobody has asked for."""

    async def live(self, life: Life) -> RunResult:
        if life.inputs is None:
            raise asyncio.CancelledError
        return await super().live(life)


cancels_itself = CancelsItself()
runs_a_dead_run_anew = RunsADeadRunAnew()
runs_a_failed_run_anew = RunsAFailedRunAnew()
resumes_without_a_lease = ResumesWithoutALease()
gives_all_runs_one_key = GivesAllRunsOneKey()
compares_no_dead_run = ComparesNoDeadRun()
drops_inputs_that_are_nothing = DropsInputsThatAreNothing()
forgets_in_long_runs = ForgetsInLongRuns()
keeps_attempts_on_itself = KeepsAttemptsOnItself()
goes_on_when_cancelled_in_a_save = GoesOnWhenCancelledInASave()
saves_after_its_return = SavesAfterItsReturn()
