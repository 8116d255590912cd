"""Where generated runs are lived: in this process, on a store in memory or on a SQLite file.

Each run has a store, a world that counts attempts, and a ledger of its own. A life that is disturbed is followed by the
next; one that fails by itself is resumed, to see that it goes on where it failed; one that finishes is tried again.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from n00dles.context import PipelineContext
from n00dles.stores.base import StateStore
from n00dles.stores.memory import InMemoryStateStore

from ..crash.case import Baseline
from ..crash.history import History
from ..crash.in_process import InProcess
from ..crash.life import Executor
from ..crash.points import How, Plan
from ..crash.scenario import EXIT_FAILED, EXIT_FINISHED, LifeEnd, LifeRequest, PlannedRun
from ..crash.shape import Shape
from ..strategies import AttemptsInMemory, PipelineSpec, build, counted_by
from ..temporary_folder import TemporaryFolder
from .failures import heals
from .guarded import Guarded
from .reborn import Reborn

__all__ = ["RUN_ID", "Scene", "Stage"]

RUN_ID = "campaign"
_LOGGER = logging.getLogger("asyncio")
_MOST_RESUMES = 8
"""How often a run that fails by itself, and will not do so for ever, is resumed."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A run that was lived. `happened` is the part of its plan that came true.

    `counted` is what the world had counted of attempts as each life began; `description` see `dependencies.describe`.
    """

    plan: Plan
    happened: Plan
    history: History
    counted: Mapping[int, Mapping[str, int]]
    description: Mapping[str, Any]

    @property
    def baseline(self) -> Baseline:
        """This run as what others are held against."""
        needs = {name: node["needs"] for name, node in self.description["nodes"].items()}
        return Baseline(self.history, [], needs, Shape.of(self.description))


class Stage:
    """Lives runs with one executor. Used as a context, since it has a folder for what has to lie on disk.

    `make_store` gives each run its store; with one of somebody's own (`has_own_store`) nothing is lived on SQLite.
    With `reborn` each life has an executor of its own, as it was before the first, if it can be copied: what it keeps
    on itself is gone. `on_play` is called before each scenario, and may raise to end it all.
    """

    def __init__(
        self,
        executor: Executor,
        *,
        make_store: Callable[[], StateStore] | None = None,
        on_play: Callable[[], None] = lambda: None,
        time_limit: float = 5.0,
        reborn: bool = False,
    ) -> None:
        self._reborn = Reborn(executor) if reborn else None
        self.executor = Guarded(self._reborn or executor)
        self.hung = 0
        self.has_own_store = make_store is not None
        self.make_store: Callable[[], StateStore] = make_store or InMemoryStateStore
        self.played = 0
        self._on_play = on_play
        self._time_limit = time_limit
        self._numbers = itertools.count()
        self._folder = TemporaryFolder("n00dles-campaign-")

    def __enter__(self) -> Self:
        # What a life has left behind is told by E13 and E14, and not once more, by asyncio, for each scenario.
        self._level = _LOGGER.level
        _LOGGER.setLevel(logging.CRITICAL + 1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        gc.collect()  # a task that nobody has awaited complains as it is cleared away
        _LOGGER.setLevel(self._level)
        self._folder.remove()

    def count(self) -> None:
        """Say that one more scenario is about to be lived."""
        self.played += 1
        self._on_play()

    @property
    def keeps_the_object(self) -> bool:
        """Whether what the executor keeps on itself outlives its deaths, as in no real process."""
        return self._reborn is None or not self._reborn.is_possible

    def place(self) -> str:
        """Return a path below the folder that nobody has used."""
        return f"{self._folder.path}/{next(self._numbers)}"

    def play(self, spec: PipelineSpec, plan: Plan = (), *, on_disk: bool = False, run_id: str = RUN_ID) -> Scene:
        """Live a run of `spec`, disturbed as `plan` says, on a store in memory or in a SQLite file."""
        resumes = _MOST_RESUMES if heals(spec) else 1
        self.count()
        place = self.place()
        planned = PlannedRun(
            id=place,
            run_id=run_id,
            inputs=spec.input_values(),
            store=f"sqlite:///{place}.db" if on_disk else "memory://",
            location=str(self._folder.path),
            ledger="",
            plan=plan,
            lines={str(point): _MIDDLE for point in plan},
            time_limit=self._time_limit,
        )
        world, counted = AttemptsInMemory(), dict[int, Counter[str]]()
        is_stopped = any(point.how in _STOPS for point in plan) and not self.has_own_store
        backend = _Backend(build(spec), self.executor, make_store=_AwaitingStore if is_stopped else self.make_store)

        def begins(request: LifeRequest) -> None:
            counted[request.life] = Counter(world.counts)
            if self._reborn is not None and not request.same_process:
                self._reborn.begin()

        with counted_by(world):
            ends = backend.lived(planned, begins, resumes)
        if on_disk:
            for path in self._folder.path.glob(f"{Path(place).name}.db*"):
                path.unlink()
        self.hung += sum(end.timed_out for end in ends)
        history = History(backend.entries(planned), ends)
        happened = sum(life.at_point is not None for life in history.working)
        return Scene(plan, plan[:happened], history, counted, backend.description)


_MIDDLE = 1
"""The line of a generated body at which it is in its middle: it has been called, and has done nothing."""


_STOPS = (How.CANCEL, How.TIMEOUT, How.INTERRUPT)


class _AwaitingStore(InMemoryStateStore):
    """A store in memory that gives way to others in a save, as one behind a network: there it can be cancelled."""

    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        """Give way, and save."""
        await asyncio.sleep(0)
        await super().save(run_id, ctx)


class _Backend(InProcess):
    """Lives one run after the other, and more lives of it than a crash explorer needs."""

    def lived(self, planned: PlannedRun, begins: Callable[[LifeRequest], None], resumes: int) -> list[LifeEnd]:
        """Live `planned` to its end; `begins` is told each life. A run that fails is resumed so often."""
        kept: StateStore | None = self._make_store() if planned.store == "memory://" else None
        ends: list[LifeEnd] = []
        requests = self._requests(planned, ends, resumes)
        for request in requests:
            begins(request)
            ends.append(self._live(request, kept=kept))
        return ends

    def _requests(self, planned: PlannedRun, ends: list[LifeEnd], resumes: int) -> Iterator[LifeRequest]:
        """Give one life after the other, and look at how each has ended."""
        for life, point in enumerate([*planned.plan, None], 1):
            yield LifeRequest(planned, life, point)
            if point is None or not self._was_disturbed(planned, life):
                break
        for _ in range(resumes):
            if ends[-1].exit_code == EXIT_FAILED:
                yield LifeRequest(planned, len(ends) + 1)
        if ends[-1].exit_code == EXIT_FINISHED:
            yield LifeRequest(planned, len(ends) + 1, again=True)

    def _was_disturbed(self, planned: PlannedRun, life: int) -> bool:
        return any(entry.kind == "at_point" and entry.life == life for entry in self._entries[planned.id])
