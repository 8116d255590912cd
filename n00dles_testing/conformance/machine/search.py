"""Playing many sequences on a store, and making one that fails as short as it can be.

Hypothesis draws and shrinks in a thread of its own, since it is not async; each sequence is played in the event loop of
the check, on a fresh location.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import seed as seeded
from hypothesis.configuration import set_hypothesis_home_dir
from hypothesis.strategies import SearchStrategy

from ...temporary_folder import TemporaryFolder
from ..expect import BrokenClause
from .generate import themes
from .offers import Offers
from .operations import Operation, Plan

__all__ = ["Broken", "Played", "Searched", "search"]

_ROUND = 50
_SHRINKING_PLAYS = 80
"""So many by hypothesis, and then so many more to leave out what it has had no time for."""
_SHRINKING_SHARE = 0.5
_MOST_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Broken:
    """A sequence that the store does not survive: the fault, and the story of this playing."""

    plan: Plan
    fault: BrokenClause
    story: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Played:
    """What came of one playing of a sequence: `broken` is None if the model allows all that came."""

    counts: Counter[str]
    broken: Broken | None


Play = Callable[[Plan], Coroutine[Any, Any, Played]]


@dataclass(slots=True)
class Searched:
    """What came of a search. `sequences` and `counts` are of those before the first fault."""

    sequences: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    broken: Broken | None = None
    was_cut_short: bool = False


class _EnoughError(BaseException):
    """Ends the drawing in the middle of a run of hypothesis."""


class _FailsError(AssertionError):
    """Tells hypothesis that a sequence fails."""


async def search(play: Play, offers: Offers, *, seed: int, sequences: int, seconds: float) -> Searched:
    """Play so many sequences, or as many as there is time for; shrink the first that fails."""
    loop = asyncio.get_running_loop()

    def played(plan: Plan) -> Played:
        return asyncio.run_coroutine_threadsafe(play(plan), loop).result()

    hunt = _Hunt(played, sequences, seconds)
    with _home_of_hypothesis():
        await asyncio.to_thread(hunt.run, offers, seed)
    if hunt.error is not None and hunt.searched.broken is None:
        raise hunt.error
    return hunt.searched


@contextmanager
def _home_of_hypothesis() -> Iterator[None]:
    """Keep what hypothesis writes to disk out of the user's folder."""
    with TemporaryFolder("n00dles-machine-") as folder:
        set_hypothesis_home_dir(folder.path)
        try:
            yield
        finally:
            set_hypothesis_home_dir(None)


class _Hunt:
    def __init__(self, played: Callable[[Plan], Played], sequences: int, seconds: float) -> None:
        self.searched = Searched()
        self.error: BaseException | None = None
        self._played = played
        self._wanted = sequences
        self._seconds = seconds
        self._ends = time.monotonic() + seconds
        self._shrinking = _SHRINKING_PLAYS

    def run(self, offers: Offers, seed: int) -> None:
        kinds = themes(offers)
        # In rounds through all kinds: when the time is up, each has been played.
        for number in range(len(kinds) * -(-self._wanted // _ROUND)):
            self._draw(kinds[number % len(kinds)], seed + number, -(-min(_ROUND, self._wanted) // len(kinds)))
            if self.searched.broken is not None or self.searched.was_cut_short or self.error is not None:
                break
        if self.searched.broken is not None:
            self._shrinking = _SHRINKING_PLAYS
            with suppress(_EnoughError):
                self._leave_out()

    def _draw(self, kind: SearchStrategy[Plan], seed: int, most: int) -> None:
        try:
            _hypothesis(kind, self._each, seed, most)
        except _EnoughError:
            return
        except Exception as error:
            # That a sequence fails, or failed only once, is known here already; anything else is no fault of a store.
            self.error = self.error or (error if self.searched.broken is None else None)

    def _each(self, plan: Plan) -> None:
        if self.searched.broken is None and time.monotonic() > self._ends:
            self.searched.was_cut_short = True
            raise _EnoughError
        if self._fails(plan):
            raise _FailsError

    def _fails(self, plan: Plan) -> bool:
        """Play it; keep what fails and is the shortest yet."""
        is_shrinking = self.searched.broken is not None
        if is_shrinking:
            self._shrinking -= 1
            if self._shrinking < 0 or time.monotonic() > self._ends:
                raise _EnoughError
        try:
            played = self._played(plan)
        except BaseException as error:
            self.error = error
            raise _EnoughError from error
        if played.broken is None:
            if not is_shrinking:
                self.searched.sequences += 1
                self.searched.counts += played.counts
            return False
        if not is_shrinking:
            self._ends = time.monotonic() + _SHRINKING_SHARE * self._seconds
        if self.searched.broken is None or plan.size <= self.searched.broken.plan.size:
            self.searched.broken = played.broken
        return True

    def _leave_out(self) -> None:
        """Leave out operations, many at once and then one by one, and nodes, as long as the rest still fails."""
        size = _MOST_AT_ONCE
        while size > 0:
            end = len(self._shortest.operations)
            while end > 0:
                at = max(0, end - size)
                rest = self._shortest.operations[:at] + self._shortest.operations[end:]
                if rest:
                    self._fails(replace(self._shortest, operations=rest))
                end = at
            size //= 2
        for at, operation in enumerate(self._shortest.operations):
            for fewer in _with_fewer_nodes(operation):
                operations = list(self._shortest.operations)
                operations[at] = fewer
                self._fails(replace(self._shortest, operations=tuple(operations)))
        if self._shortest.ids != "plain":
            self._fails(replace(self._shortest, ids="plain", first_id=0))

    @property
    def _shortest(self) -> Plan:
        assert self.searched.broken is not None
        return self.searched.broken.plan


def _with_fewer_nodes(operation: Operation) -> Iterator[Operation]:
    nodes: list[Any] = operation.get("nodes", [])
    if operation["do"] != "overlap":
        yield from ({**operation, "nodes": kept} for kept in ([], nodes[:1]) if len(kept) < len(nodes))


def _hypothesis(strategy: SearchStrategy[Plan], each: Callable[[Plan], None], number: int, most: int) -> None:
    @seeded(number)
    @settings(
        max_examples=most,
        database=None,
        deadline=None,
        derandomize=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
        print_blob=False,
    )
    @given(strategy)
    def sequence(plan: Plan) -> None:
        each(plan)

    sequence()
