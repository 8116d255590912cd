"""Saving one run's context: one writer, in order, and a failing store kept apart from a failing node."""

from __future__ import annotations

import asyncio
import time

from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_exponential

from .context import PipelineContext
from .errors import (
    CorruptCheckpointError,
    N00dlesError,
    PipelineFailure,
    RunLockedError,
    RunNotFoundError,
    StaleContextError,
    StateStoreError,
    StoreVersionError,
    described,
)
from .events import CheckpointFailed, CheckpointSaved, CheckpointSaving, Observers
from .stores.base import StateStore

__all__ = ["Checkpointer"]

_FINAL = (StaleContextError, CorruptCheckpointError, RunLockedError, RunNotFoundError, StoreVersionError)

SAVE_ATTEMPTS = 3
_FIRST_DELAY = 0.05


class Checkpointer:
    """Makes what a context holds durable.

    Saves of the run go one after another; whatever completes while one is in flight shares the next. A save that
    fails is tried `SAVE_ATTEMPTS` times, unless the store says that it is final. That a cancelled save is done or not
    done, and never late, is the store's own duty (clause S14).
    """

    def __init__(self, store: StateStore, context: PipelineContext, observers: Observers) -> None:
        self._store = store
        self._context = context
        self._observers = observers
        self._lock = asyncio.Lock()
        self._wanted = 0
        self._done = 0
        self._started = time.monotonic_ns()
        self._elapsed_before = context.elapsed_ms

    async def save(self) -> None:
        """Return once everything that the context holds now is durable. Raises `StateStoreError`."""
        self._wanted += 1
        mine = self._wanted
        async with self._lock:
            if self._done >= mine:
                return
            covered = self._wanted
            await self._save_now()
            self._done = covered

    async def save_failure(self, failure: PipelineFailure) -> None:
        """Record that the run has failed, if the store lets us; if not, `failure` says so too."""
        self._context.status, self._context.error, self._context.stalled = "failed", str(failure), 0
        try:
            await self.save()
        except StateStoreError as error:
            failure.add_note(f"and that it failed could not be saved: {error}")

    async def _save_now(self) -> None:
        context = self._context
        nodes = context.unsaved if self._observers else ()
        serial, revision = context.serial, context.revision
        context.elapsed_ms = self._elapsed_before + (time.monotonic_ns() - self._started) // 1000 / 1000
        if self._observers:
            self._observers.emit(CheckpointSaving(run_id=context.run_id, nodes=nodes, revision=revision))
        try:
            await self._store.save(context.run_id, context)
        except Exception as error:
            self._emit_failure(nodes, revision, error)
            if not _is_transient(error):
                raise
            await self._save_again(nodes, revision)
        # A foreign store does not say what it has written; it was handed the whole context.
        context.mark_saved(serial)
        if self._observers:
            self._observers.emit(CheckpointSaved(run_id=context.run_id, nodes=nodes, revision=context.revision))

    def _emit_failure(self, nodes: tuple[str, ...], revision: int, error: Exception) -> None:
        self._observers.emit(
            CheckpointFailed(run_id=self._context.run_id, nodes=nodes, revision=revision, error=described(error))
        )

    async def _save_again(self, nodes: tuple[str, ...], revision: int) -> None:
        run_id = self._context.run_id
        await asyncio.sleep(_FIRST_DELAY)
        try:
            async for attempt in AsyncRetrying(
                stop=stop_after_attempt(SAVE_ATTEMPTS - 1),
                wait=wait_exponential(2 * _FIRST_DELAY, max=1.0),
                retry=retry_if_exception(_is_transient),
                reraise=True,
            ):
                with attempt:
                    try:
                        await self._store.save(run_id, self._context)
                    except Exception as error:
                        self._emit_failure(nodes, revision, error)
                        raise
        except N00dlesError:
            raise
        except Exception as error:
            raise StateStoreError(
                f"the store {self._store!r} failed to save run {run_id!r} {SAVE_ATTEMPTS} times: "
                f"{described(error)}. What the nodes returned is kept in this process; resume(pipeline, "
                f"{run_id!r}) saves it and goes on.",
                run_id=run_id,
            ) from error


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, N00dlesError):
        return isinstance(error, StateStoreError) and not isinstance(error, _FINAL)
    return isinstance(error, Exception)
