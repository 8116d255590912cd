"""Holding a run while it is carried on: one worker at a time, where the store offers leases."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import socket
from types import TracebackType
from typing import Any

from .config import lease_ttl
from .context import PipelineContext
from .errors import RunLockedError
from .pipeline import Pipeline
from .stores.base import StateStore
from .stores.leases import Leases, has_leases
from .threads import wait_out

__all__ = ["Holding", "check_wait", "this_worker"]

_RENEWALS = 3
"""How often a lease is renewed within its time, so that one late or failed renewal does not lose it."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5  # seconds between two looks at a run that is held

_log = logging.getLogger("n00dles")


class Holding:
    """`async with`: the time in which this worker has the lease of a run, and renews it.

    A run that another holds is waited for, at most `wait` seconds. If it is still held then, it may be looked at, and
    `admit` says whether this worker may go on. When the lease is lost, the body is cancelled, and `RunLockedError` is
    raised at its end. Without leases nothing is held; the revision fences. A `lease` that this worker has already, by
    a claim, is taken over.
    """

    def __init__(self, store: StateStore, run_id: str, wait: float, lease: Any = None) -> None:
        self._store: Leases | None = store if has_leases(store) else None
        self._run_id = run_id
        self._wait = wait
        self._ttl = lease_ttl()
        self._lease: Any = lease  # of whatever kind the store makes
        self._refused: RunLockedError | None = None
        self._lost: RunLockedError | None = None
        self._is_over = False
        self._timer: asyncio.TimerHandle | None = None
        self._renewal: asyncio.Task[None] | None = None

    @property
    def is_refused(self) -> bool:
        """Whether another holds the run, and `admit` has to be asked."""
        return self._refused is not None

    def admit(self, context: PipelineContext | None, pipeline: Pipeline) -> None:
        """Raise `RunLockedError` if another holds the run, unless it is finished: then there is nothing to call."""
        is_done = context is not None and context.status == "finished" and context.signature == pipeline.signature()
        if self._refused is not None and not is_done:
            raise self._refused.with_traceback(None)

    async def __aenter__(self) -> Holding:
        if self._store is not None:
            task = asyncio.current_task()
            assert task is not None  # noqa: S101 - a coroutine of asyncio runs in one
            self._task, self._cancellations = task, task.cancelling()
            if self._lease is None:
                await self._acquire(self._store)
            else:
                self._schedule()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        if self._store is None or self._lease is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        if self._renewal is not None:
            self._renewal.cancel()
            await wait_out(self._renewal)
        try:
            await self._store.release(self._lease)
        except Exception as failure:
            _log.warning("the lease of run %r was not released, and has to expire: %s", self._run_id, failure)
        if self._lost is not None:
            others_cancel = self._task.uncancel() > self._cancellations
            if isinstance(error, Exception):
                raise self._lost from error
            if isinstance(error, asyncio.CancelledError) and not others_cancel:
                # Where the run and the renewal were at that moment says nothing of why.
                raise self._lost.with_traceback(None) from None

    async def _acquire(self, store: Leases) -> None:
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + self._wait, _FIRST_PAUSE
        while True:
            try:
                self._lease = await store.acquire(self._run_id, this_worker(), self._ttl)
                break
            except RunLockedError as error:
                left = deadline - loop.time()
                if left <= 0:
                    if self._wait > 0:
                        error.add_note(f"It was waited for, for {self._wait:g} s.")
                    self._refused = error
                    return
            await asyncio.sleep(min(pause, left))
            pause = min(1.5 * pause, _LONGEST_PAUSE)
        self._schedule()

    def _schedule(self) -> None:
        # Most runs are over before a timer ends, so that they do not pay for a task.
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._ttl / _RENEWALS, self._begin_renewal)

    def _begin_renewal(self) -> None:
        self._renewal = asyncio.create_task(self._renew(), name=f"n00dles lease of {self._run_id}")

    async def _renew(self) -> None:
        assert self._store is not None  # noqa: S101 - else there is no timer
        try:
            renewed = await self._store.renew(self._lease, self._ttl)
        except RunLockedError as error:
            if not self._is_over:
                self._lost = error
                self._task.cancel("the lease of the run was lost")
            return
        except Exception as error:
            # If it is for good, the next save fails as well; if it expires meanwhile, the revision still fences.
            _log.warning("the lease of run %r was not renewed, and is tried again: %s", self._run_id, error)
        else:
            self._lease = self._lease if renewed is None else renewed
        if not self._is_over:
            self._schedule()


def this_worker() -> str:
    """Return what names this process to a person, as the holder of a lease."""
    return f"process {os.getpid()} on {socket.gethostname()}"


def check_wait(wait: float) -> None:
    """Raise `ValueError` if `wait` is no number of seconds; infinity is one."""
    if isinstance(wait, bool) or not isinstance(wait, (int, float)) or math.isnan(wait) or wait < 0:
        raise ValueError(f"wait={wait!r} is not a number of seconds; 0 does not wait, and math.inf waits to the end.")
