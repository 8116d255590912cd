"""E16: two executors on one run: one proceeds, the other gets a typed error or waits; no node is called twice.

A fresh run, or one that was killed half-way, has two executors. The first is held inside a node, by a barrier. Then
the second one is started on the same run: through the same store object, or through one of its own on the same file.
It must end with an error of its own kind, or wait until the first is done; a node that both have called is a fault.
That the two overlap is so by construction: the first one does not leave its node before the second has been refused,
has called something, or has waited a while.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from n00dles.stores.base import Closable, StateStore
from n00dles.stores.memory import InMemoryStateStore
from n00dles.stores.sqlite import SQLiteStateStore

from ..crash.history import same
from ..crash.recorded_store import SimulatedDeath
from ..crash.typed import encode, show
from ..strategies import AttemptsInMemory, PipelineSpec, build, counted_by, predict
from .direct import Ended, ended, is_typed, killed
from .failures import can_fail
from .family import Fault, Judgement, Trial
from .simpler import simpler
from .stage import RUN_ID, Stage
from .subjects import specs

__all__ = ["RivalsFamily", "faults_of_rivals"]

_WAITS_SECONDS = 0.15
"""A second executor that has not called a node or ended after so long is one that waits."""
_LIMIT_SECONDS = 10.0

_STORES = ("one store in memory", "one SQLite store", "two SQLite stores")
_FRESH = "run, run"
_WAYS = ("resume, resume", "run, resume", "run, run of a dead run")
"""How the two carry on a run that was killed: the first, and the second."""
_WHY = "both have loaded the same record, and neither knows of the other: a lease, held for as long as one works, tells"


class RivalsFamily:
    """Scenarios of E16: `rest` is the node in which the first executor is held, the store between the two, and how.

    Without a third, both run a fresh run.
    """

    name = "rivals"
    clauses = frozenset({"E16"})
    share = 0.04
    on_disk = False
    is_scouting = False

    def groups(self) -> st.SearchStrategy[Sequence[Trial]]:
        """Draw a pipeline, a node that it calls, and what the two share."""
        return _groups()

    def judged(self, trials: Sequence[Trial], stage: Stage) -> Iterator[tuple[Trial, Judgement]]:
        """Start both on each, and see what becomes of them."""
        for trial in trials:
            stage.count()
            yield trial, asyncio.run(_judged(trial, stage))

    def is_sound(self, trial: Trial) -> bool:
        """Whether its node is one that is called, and the rest is known."""
        node, store, ways = _read(trial)
        is_known = store in _STORES and ways in (_FRESH, *_WAYS) and len(trial.rest) <= len(_read(trial))
        return is_known and node in predict(trial.spec).calls

    def plainer(self, trial: Trial) -> Iterator[Sequence[Trial]]:
        """Yield the same meeting in simpler pipelines."""
        for less in simpler(trial.spec):
            if trial.rest[0] in predict(less).calls:
                yield [replace(trial, spec=less)]

    def told(self, trial: Trial) -> Mapping[str, Any]:
        """Return when the second one comes, and what they share."""
        node, store, ways = _read(trial)
        of = "" if ways == _FRESH else f"; the run was killed in {node} before"
        ways = ways.removesuffix(_OF_A_DEAD_RUN)
        return {"rivals": f"the second executor comes while the first is in {node}; {store}; {ways}{of}"}


@st.composite
def _groups(draw: st.DrawFn) -> Sequence[Trial]:
    spec = draw(specs(failures=False))
    node = draw(st.sampled_from(list(predict(spec).calls)))
    # With an attempt that was planned to fail, and one lost with the life, there may be none left.
    ways = _FRESH if can_fail(spec) else draw(st.sampled_from((_FRESH, _FRESH, *_WAYS)))
    rest = (node, draw(st.sampled_from(_STORES)))
    return [Trial(RivalsFamily.name, spec, rest if ways == _FRESH else (*rest, ways))]


def _read(trial: Trial) -> tuple[str, str, str]:
    node, store, *ways = trial.rest
    return node, store, ways[0] if ways else _FRESH


_OF_A_DEAD_RUN = " of a dead run"


@dataclass(slots=True)
class _Barrier:
    """Holds the first call of a node until it is let go."""

    node: str
    inside: asyncio.Event
    release: asyncio.Event

    async def __call__(self, name: str, call: Callable[[], Awaitable[Any]]) -> Any:
        if name == self.node and not self.inside.is_set():
            self.inside.set()
            await self.release.wait()
        return await call()


async def _judged(trial: Trial, stage: Stage) -> Judgement:
    node, kind, ways = _read(trial)
    stores = _stores(kind, stage)
    barrier = _Barrier(node, asyncio.Event(), asyncio.Event())
    try:
        with counted_by(AttemptsInMemory()):
            if ways != _FRESH:
                dead = await _dead(trial.spec, stores[0], node, stage)
                if not isinstance(dead.error, SimulatedDeath):
                    return Judgement(vacuous=f"the run was not killed in {node}")
            first, second, overlapped = await _raced(trial.spec, stores, barrier, stage, ways)
    finally:
        for store in dict.fromkeys(stores):
            if isinstance(store, Closable):
                await store.aclose()
    story = (f"{'first':<9}{first.told}", f"{'second':<9}{'waited; ' if second.waited else ''}{second.told}")
    if not overlapped:
        return Judgement(vacuous=f"the first executor was never in {node}")
    faults = list(faults_of_rivals(trial.spec, first, second))
    if faults and ways != _FRESH and not await _goes_on(trial.spec, node, stage):
        return Judgement(vacuous="the executor does not carry this run on alone either")
    return Judgement(faults[:1], {"E16": 1}, lambda why: (*story, *([f"{'why':<9}{why}"] if why else [])))


async def _dead(spec: PipelineSpec, store: StateStore, node: str, stage: Stage) -> Ended:
    return await killed(stage.executor, build(spec), store, RUN_ID, inputs=spec.input_values(), node=node)


async def _goes_on(spec: PipelineSpec, node: str, stage: Stage) -> bool:
    """Whether one executor alone resumes the run that was killed, and gives what is due."""
    store = InMemoryStateStore()
    with counted_by(AttemptsInMemory()):
        await _dead(spec, store, node, stage)
        alone = await ended(stage.executor, build(spec), store, RUN_ID)
    return alone.ok and same(alone.output, encode(predict(spec).output))


async def _raced(
    spec: PipelineSpec, stores: Sequence[StateStore], barrier: _Barrier, stage: Stage, ways: str
) -> tuple[Ended, Ended, bool]:
    """Return how both ended, and whether the first was in its node when the second was started."""
    given = [spec.input_values() if way == "run" else None for way in ways.removesuffix(_OF_A_DEAD_RUN).split(", ")]
    one, other = list[str](), list[str]()
    first = asyncio.create_task(
        ended(stage.executor, build(spec), stores[0], RUN_ID, inputs=given[0], body=barrier, calls=one)
    )
    held = asyncio.create_task(barrier.inside.wait())
    await asyncio.wait({first, held}, return_when=asyncio.FIRST_COMPLETED, timeout=_LIMIT_SECONDS)
    held.cancel()
    if not barrier.inside.is_set():
        first.cancel()
        return Ended(one), Ended(other), False
    second = asyncio.create_task(ended(stage.executor, build(spec), stores[-1], RUN_ID, inputs=given[1], calls=other))
    ends = asyncio.get_running_loop().time() + _WAITS_SECONDS
    while not second.done() and not other and asyncio.get_running_loop().time() < ends:
        await asyncio.wait({second}, timeout=0.002)
    waited = not second.done() and not other
    barrier.release.set()
    results = []
    for task, calls in ((first, one), (second, other)):
        with suppress(TimeoutError):
            results.append(await asyncio.wait_for(task, _LIMIT_SECONDS))
            continue
        results.append(Ended(calls, error=TimeoutError(f"it was not done within {_LIMIT_SECONDS:g} s")))
    results[1].waited = waited
    return results[0], results[1], True


def _stores(kind: str, stage: Stage) -> list[StateStore]:
    if kind == "one store in memory":
        return [InMemoryStateStore()]
    place = f"{stage.place()}.db"
    return [SQLiteStateStore(place) for _ in range(2 if kind == "two SQLite stores" else 1)]


def faults_of_rivals(spec: PipelineSpec, first: Ended, second: Ended) -> Iterator[Fault]:
    """Yield what two executors on one run may not do."""
    expected = predict(spec)
    counts = Counter([*first.calls, *second.calls])
    due = encode(expected.output)
    for node, count in counts.items():
        if node in first.calls and node in second.calls and count > expected.calls.get(node, 0):
            yield "E16", f"`{node}` was called by both executors", _WHY
    if not first.ok and not second.ok:
        yield "E16", f"neither executor came to an end: {first.told}; {second.told}", "one of them has to proceed"
    for which, one in (("first", first), ("second", second)):
        if one.ok and not same(one.output, due):
            yield "E16", f"the {which} executor returned {show(one.output)}, where {show(due)} is due", ""
        elif one.error is not None and not is_typed(one.error):
            yield (
                "E16",
                f"the {which} executor failed with an error of no kind of its own: {type(one.error).__name__}: "
                f"{one.error}",
                "who is refused has to be able to tell that from a fault",
            )
