"""A worker: it claims runs that nobody works on, and carries several of them on at a time, until it is told to end."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Literal

from .api import as_pipeline, carry_on_claimed, check_ready_to_call
from .config import lease_ttl
from .context import PipelineContext
from .errors import (
    ConfigurationError,
    CorruptCheckpointError,
    InputsChangedError,
    PipelineChangedError,
    PipelineFailure,
    ReadOnlyStoreError,
    RunLockedError,
    RunNotFoundError,
    StaleContextError,
    StateStoreError,
    StoreVersionError,
    described,
)
from .events import Event, RunFinished, RunStarted
from .leasing import this_worker
from .pipeline import Pipeline, Step
from .stores.base import StateStore
from .stores.claims import Claim, check_claimable, claim_runs
from .wiring import wire
from .worker_places import Places, is_suspect

__all__ = ["Note", "NoteKind", "RunWorker", "by_name"]

GRACE = 5.0
"""Seconds that runs which are released have to save that they were, and to let go."""

_SHORTEST_IDLE, _LONGEST_IDLE = 0.05, 1.0  # seconds between two looks at a store that has nothing to do
_SHORTEST_FAULT, _LONGEST_FAULT = 0.2, 15.0  # seconds between two tries after a fault of the store
_MOST_FAULTS = 10  # in a row, before a worker that is to end when idle gives a store up: some 45 s of waiting

NoteKind = Literal[
    "started", "claimed", "works alone", "finished", "failed", "released", "lost", "left alone",
    "store fault", "store is back", "draining", "cut off", "ended",
]  # fmt: skip

# The run is another worker's by now, or gone.
_LOST = (RunLockedError, StaleContextError, RunNotFoundError)
# It cannot be carried on by this program, however often it is tried; another one perhaps can.
_NOT_OURS = (PipelineChangedError, InputsChangedError, CorruptCheckpointError, StoreVersionError)


@dataclass(frozen=True, slots=True)
class Note:
    """What a worker says of itself, or of a run: `life` counts from 1, `calls` are the node calls of this life."""

    kind: NoteKind
    message: str = ""
    run_id: str | None = None
    pipeline: str | None = None
    life: int | None = None
    calls: int | None = None
    seconds: float | None = None
    at: float = field(default_factory=time.time)


def by_name(targets: Iterable[tuple[str, Step]]) -> dict[str, Pipeline]:
    """Return pipelines by their names; each comes with the text by which it was named.

    Raises `ConfigurationError` for two different ones of one name, since a stored run knows its pipeline by that.
    """
    found: dict[str, tuple[str, Step]] = {}
    for target, step in targets:
        name = as_pipeline(step).name
        other, known = found.setdefault(name, (target, step))
        if known is not step:
            raise ConfigurationError(
                f"two pipelines are named {name!r}: {other} and {target}. A stored run knows its pipeline by this "
                "name, so give one of them another, as in pipeline(…, name='…')."
            )
    return {name: as_pipeline(step) for name, (_, step) in found.items()}


class RunWorker:
    """Carries on runs of `pipelines` (by name) in `store`, at most `concurrency` at a time.

    `tell` is called with each `Note`. Raises `ConfigurationError` if a pipeline could not be called here, or the store
    cannot be shared: a worker that could not work does not begin.
    """

    def __init__(
        self,
        pipelines: Mapping[str, Pipeline],
        store: StateStore,
        tell: Callable[[Note], None],
        *,
        concurrency: int = 8,
        drain_timeout: float = 25.0,
        until_idle: bool = False,
    ) -> None:
        check_claimable(store)
        for whole in pipelines.values():
            wire(whole)
            check_ready_to_call(whole)
        self._pipelines = dict(pipelines)
        self._store = store
        self._tell = tell
        self._concurrency = concurrency
        self._drain_timeout = drain_timeout
        self._until_idle = until_idle
        self._running: set[asyncio.Task[None]] = set()
        self._left_alone: set[str] = set()
        self._places = Places()
        self._has_claimed = False
        self._faults = 0
        self._last_fault = ""
        self._is_a_run_at_fault = False
        self._not_before = 0.0
        self._is_to_end = asyncio.Event()
        self._drains_since = 0.0

    def drain(self) -> None:
        """Claim nothing more, and end when the runs under way have; call it in the thread of the event loop."""
        if not self._is_to_end.is_set():
            self._drains_since = time.monotonic()
        self._is_to_end.set()

    async def work(self) -> int:
        """Work until `drain` is called, or with `until_idle` until there is nothing to do.

        Raises `ConfigurationError` if the store needs what is not installed, `ReadOnlyStoreError` if it takes no writes
        from the start, and with `until_idle` `StateStoreError` if it fails again and again; else that is told, and
        waited for. Returns how many calls had to be left running,
        because their nodes could not be cancelled: the process should then end without waiting for them.
        """
        self._tell(Note("started", f"{this_worker()} works on runs of {', '.join(self._pipelines)} in {self._store!r}"))
        looks = 0
        while not self._is_to_end.is_set():
            pause, free = self._not_before - time.monotonic(), self._free_places()
            if pause > 0:
                await self._rest(pause, until_a_run_ends=False)
                continue
            if not free:
                await self._rest(None)
                continue
            if self._until_idle and not self._running and self._faults >= _MOST_FAULTS:
                raise StateStoreError(
                    f"the worker gives up after {self._faults} faults of the store in a row. {self._last_fault}"
                )
            had_runs = bool(self._running)
            claims = await self._claim(free)
            if claims is None:
                continue
            for claim in claims:
                self._start(claim)
            looks = 0 if claims else looks + 1
            # What was under way when the store was asked may have been released since, and is to be claimed again.
            if self._until_idle and not claims and not had_runs:
                break
            if len(claims) < free:
                await self._rest(_pause(looks, _SHORTEST_IDLE, _LONGEST_IDLE))
        left = await self._drained()
        self._tell(Note("ended", f"{left} call{'' if left == 1 else 's'} cut off" if left else ""))
        return left

    def _free_places(self) -> int:
        return 0 if self._places.has_suspects else self._concurrency - len(self._running)

    async def _claim(self, free: int) -> list[Claim] | None:
        """Return runs to work on; None after a fault of the store, which is told, and does not end a worker."""
        try:
            claims = await claim_runs(
                self._store, self._pipelines, this_worker(), lease_ttl(), limit=free, skip=self._left_alone
            )
        except ConfigurationError:
            raise  # that something is not installed does not pass
        except ReadOnlyStoreError as error:
            if not self._has_claimed:
                raise  # whoever is named a replica has to name the primary; only later it may be a failover
            self._note_fault(described(error))
            return None
        except Exception as error:
            self._note_fault(described(error))
            return None
        self._has_claimed = True
        if not self._is_a_run_at_fault:
            self._note_success()
        return claims

    def _note_fault(self, message: str) -> None:
        now = time.monotonic()
        self._last_fault = message
        # All runs of a worker meet the same outage: what fails while the store is let alone anyway is no further fault.
        if now >= self._not_before:
            self._faults += 1
            self._not_before = now + _pause(self._faults, _SHORTEST_FAULT, _LONGEST_FAULT)
        self._tell(Note("store fault", f"{message} (tried again in {self._not_before - now:.1f} s)"))

    def _note_success(self) -> None:
        self._is_a_run_at_fault = False
        if self._faults:
            self._faults = 0
            self._tell(Note("store is back"))

    async def _rest(self, seconds: float | None, *, until_a_run_ends: bool = True) -> None:
        """Wait so long (None: for ever), or until this worker is to end, or until one of its runs has ended."""
        end = asyncio.create_task(self._is_to_end.wait())
        try:
            await asyncio.wait(
                {end, *(self._running if until_a_run_ends else ())},
                timeout=seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            end.cancel()

    def _start(self, claim: Claim) -> None:
        task = asyncio.create_task(self._carry_on(claim), name=f"n00dles run {claim.run_id}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _carry_on(self, claim: Claim) -> None:
        started, seen = time.monotonic(), _Seen()

        def tell(kind: NoteKind, message: str = "") -> None:
            seconds = time.monotonic() - started
            self._tell(Note(kind, message, claim.run_id, claim.pipeline, seen.life, seen.calls, seconds))

        def place(context: PipelineContext) -> AbstractAsyncContextManager[None]:
            if is_suspect(context):
                tell("works alone", f"{context.stalled} lives in a row have ended without a completed node")
            return self._places.of(context)

        tell("claimed")
        try:
            await carry_on_claimed(self._pipelines[claim.pipeline], claim, self._store, (seen.note,), place)
        except PipelineFailure as failure:
            tell("failed", str(failure))
        except asyncio.CancelledError:
            tell("released", "it is not through; what is completed is stored, and any worker may go on")
        except _LOST as error:
            tell("lost", str(error))
        except Exception as error:
            if isinstance(error, StateStoreError) and not isinstance(error, _NOT_OURS):
                tell("released", described(error))
                # That the store lets runs be claimed does not show that it takes their saves, too.
                self._is_a_run_at_fault = True
                self._note_fault(f"run {claim.run_id!r} was not saved or read")
            else:
                self._left_alone.add(claim.run_id)
                tell("left alone", described(error))
        else:
            tell("finished")
            self._note_success()

    async def _drained(self) -> int:
        """Let the runs under way finish, release those that are not through in time, and return how many are stuck."""
        running = set(self._running)
        if not running:
            return 0
        self._tell(
            Note("draining", f"{len(running)} under way; what is not through in {self._drain_timeout:g} s is released")
        )
        # A claim that was under way has taken some of that time, with a server that does not answer all of it.
        spent = time.monotonic() - self._drains_since
        _, running = await asyncio.wait(running, timeout=max(0.0, self._drain_timeout - spent))
        if not running:
            return 0
        for task in running:
            task.cancel()
        _, stuck = await asyncio.wait(running, timeout=GRACE)
        for task in stuck:
            self._tell(
                Note("cut off", f"{task.get_name()} is in a call that cannot be cancelled; the next worker repeats it")
            )
        return len(stuck)


class _Seen:
    """What the events of a run say of this life of it."""

    def __init__(self) -> None:
        self.life: int | None = None
        self.calls: int | None = None

    def note(self, event: Event) -> None:
        match event:
            case RunStarted(life=life):
                self.life = life
            case RunFinished(calls=calls):
                self.calls = calls


def _pause(times: int, shortest: float, longest: float) -> float:
    """Return how long to wait after so many tries in vain; no two workers wait equally long, so none meet for ever."""
    return min(longest, shortest * 2.0 ** min(times - 1, 20)) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
