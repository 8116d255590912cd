"""Lives as calls in this process: the fast inner loop, and the way for a pipeline that no other process can import.

An exception that nothing catches stands for the kill, and a fence keeps the dead life's surviving tasks from the store
and from the ledger. That is weaker than SIGKILL: `finally` blocks still run, and threads live on.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NoReturn

from n00dles import api
from n00dles.pipeline import Pipeline
from n00dles.stores.base import StateStore
from n00dles.stores.memory import InMemoryStateStore

from .child import life_store
from .dependencies import describe
from .instrument import Trigger
from .ledger import Entry, Ledger, LedgerWriter, MemoryLedger, read_ledger
from .life import Executor, SelfContained, live, write_failure
from .recorded_store import Fence, SimulatedDeath
from .scenario import EXIT_FAILED, EXIT_FINISHED, LifeEnd, LifeRequest, PlannedRun, play_one

__all__ = ["InProcess"]


class InProcess:
    """Lives every life here, each on an event loop of its own.

    `store` serves all scenarios; without one each scenario opens what its text says, and `memory://` lasts as long as
    the scenario; it is what `make_store` makes.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        executor: Executor,
        store: StateStore | None = None,
        *,
        make_store: Callable[[], StateStore] = InMemoryStateStore,
    ) -> None:
        self.description = executor.describe() if isinstance(executor, SelfContained) else describe(pipeline)
        self._pipeline = pipeline
        self._executor = executor
        self._store = store
        self._make_store = make_store
        self._entries: dict[str, list[Entry]] = {}
        self._in_hand: dict[Any, Any] = {}
        self._runner: asyncio.Runner | None = None

    def play(self, scenarios: Iterable[PlannedRun], lanes: int = 1) -> Iterator[tuple[PlannedRun, list[LifeEnd]]]:
        """Live one scenario after the other; there is one process, so there is one lane."""
        for scenario in scenarios:
            memory = self._make_store() if self._store is None and scenario.store == "memory://" else None
            yield scenario, play_one(scenario, partial(self._live_process, kept=self._store or memory))

    def entries(self, scenario: PlannedRun) -> list[Entry]:
        """Return the ledger of a scenario that was lived. One without a file is kept here until it is asked for."""
        return read_ledger(scenario.ledger) if scenario.ledger else self._entries.pop(scenario.id, [])

    def close(self) -> None:
        """Close the event loop that lives share."""
        self._leave_loop()

    def _ledger(self, request: LifeRequest) -> Ledger:
        scenario = request.scenario
        if scenario.ledger:
            return LedgerWriter(scenario.ledger, request.life)
        return MemoryLedger(self._entries.setdefault(scenario.id, []), request.life)

    def _live_process(self, request: LifeRequest, *, kept: StateStore | None) -> list[LifeEnd]:
        """Live the lives that a process of their own would have."""
        ends: list[LifeEnd] = []
        following: LifeRequest | None = request
        while following is not None:
            ends.append(self._live(following, kept=kept))
            following = following.following(ends[-1].exit_code == EXIT_FINISHED)
        return ends

    def _live(self, request: LifeRequest, *, kept: StateStore | None) -> LifeEnd:
        scenario, point = request.scenario, request.point
        ledger, fence = self._ledger(request), Fence()

        def die() -> NoReturn:
            fence.down = True
            ledger.stop()
            raise SimulatedDeath

        trigger = Trigger(ledger, point, die, line=scenario.line_of(point), record=scenario.record)
        started = time.monotonic()
        code: int | None = None
        timed_out = False
        try:
            with _environment(scenario.environment), self._process(request):
                finished = self._run_to_end(
                    lambda: _limited(self._lived(request, kept, trigger, fence), scenario.time_limit)
                )
            code = EXIT_FINISHED if finished else EXIT_FAILED
        except TimeoutError:
            fence.down = timed_out = True
        except (SystemExit, asyncio.CancelledError) as error:
            # sys.exit in a body ends this life like any other end, and so does a cancellation that nobody asked for.
            write_failure(ledger, "run", error)
            code = EXIT_FAILED
        except (Exception, SimulatedDeath, BaseExceptionGroup):
            # A death may come wrapped in the group of a task group, or in whatever an executor makes of it.
            if not fence.down:
                raise
        finally:
            ledger.close()
        return LifeEnd(
            life=request.life,
            pid=os.getpid(),
            point=None if point is None else str(point),
            signal=None,
            exit_code=code,
            timed_out=timed_out,
            seconds=time.monotonic() - started,
            simulated=fence.down and code is None and not timed_out,
        )

    def _run_to_end(self, life: Callable[[], Coroutine[Any, Any, bool]]) -> bool:
        """Run `life` on the event loop that lives share; in a thread on one of its own if a loop runs in this one.

        Nothing of a life is left in the loop for the next one.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._on_shared_loop(life)
        ended: list[Any] = []

        def work() -> None:
            try:
                ended.append(asyncio.run(life()))
            except BaseException as error:  # handed on to the caller
                ended.append(error)

        thread = threading.Thread(target=work, name="n00dles-testing-life")
        thread.start()
        thread.join()
        if isinstance(ended[0], BaseException):
            raise ended[0]
        return bool(ended[0])

    def _on_shared_loop(self, life: Callable[[], Coroutine[Any, Any, bool]]) -> bool:
        if self._runner is None:
            # A loop is most of what a small life costs.
            self._runner = asyncio.Runner()
            # Whoever does not close us leaves a loop with nothing in it, and that may be in the middle of another one.
            self._close_loop = weakref.finalize(self, self._runner.get_loop().close)
        is_clear = False
        try:
            ok = self._runner.run(life())
            is_clear = _is_clear(self._runner.get_loop())
            return ok
        finally:
            if not is_clear:
                self._leave_loop()

    def _leave_loop(self) -> None:
        """End what is left in the loop as `asyncio.run` does, and the loop with it."""
        runner, self._runner = self._runner, None
        if runner is not None:
            self._close_loop.detach()
            runner.close()

    @contextmanager
    def _process(self, request: LifeRequest) -> Iterator[None]:
        """Have n00dles know what its process keeps in hand when a save has failed; a new process has nothing."""
        if not request.same_process:
            self._in_hand = {}
        outside, api._held = api._held, self._in_hand
        try:
            yield
        finally:
            api._held = outside

    _close_loop: weakref.finalize[Any, Any]

    async def _lived(self, request: LifeRequest, kept: StateStore | None, trigger: Trigger, fence: Fence) -> bool:
        if kept is not None:
            return await live(request, self._pipeline, self._executor, store=kept, trigger=trigger, fence=fence)
        async with life_store(request.scenario, self._executor) as store:
            return await live(request, self._pipeline, self._executor, store=store, trigger=trigger, fence=fence)


async def _limited(life: Coroutine[Any, Any, bool], limit: float) -> bool:
    asyncio.get_running_loop().set_exception_handler(_ignore_the_dead)
    async with asyncio.timeout(limit):
        return await life


def _ignore_the_dead(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if not isinstance(context.get("exception"), SimulatedDeath):
        loop.default_exception_handler(context)


def _is_clear(loop: Any) -> bool:
    """Whether nothing is left in an event loop: no task, no callback, no timer, no pool of threads."""
    timers = any(not timer.cancelled() for timer in getattr(loop, "_scheduled", []))
    pool = getattr(loop, "_default_executor", None)
    return not (timers or getattr(loop, "_ready", None) or pool or asyncio.all_tasks(loop))


@contextmanager
def _environment(wanted: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
