"""What a store may give back: an independent model that knows the calls and their ends, and no store.

For each run it holds the states that it may be in now. After an acknowledged call there is one, after a refused one
the one before; a call whose end is unknown leaves both. What comes back picks one of them, or there is none that fits,
and the store is wrong.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..records import Record
from .states import Possible, State, Value, canonical, difference_from

__all__ = ["ImpossibleError", "Model", "Worker"]


class ImpossibleError(Exception):
    """What came is none of what is allowed. `wanted` is the record that it should have been, or one of several."""

    def __init__(self, wanted: Record, allowed: int, why: str) -> None:
        super().__init__(why)
        self.wanted = wanted
        self.allowed = allowed


@dataclass(slots=True)
class Worker:
    """Whoever has loaded a run: what its context holds, and which state of which life of the run it continues.

    `is_in_doubt` says that a save of it has ended in a way that leaves open what it continues, `is_refusable` that it
    has a node to save for which a store may have no room.
    """

    life: int
    version: int
    inputs: Value
    completed: dict[str, Any] = field(default_factory=dict)
    is_in_doubt: bool = False
    is_refusable: bool = False

    def takes(self, outputs: Mapping[str, Any]) -> None:
        """Complete nodes in its context."""
        self.completed.update(outputs)


@dataclass(slots=True)
class _Run:
    states: list[Possible] = field(default_factory=lambda: [None])
    last: str = "nobody has created it"


class Model:
    """All runs of a location, each by a number.

    Without revisions a store cannot tell a worker of a deleted run from one of the next run of the same id.
    """

    def __init__(self, *, keeps_revisions: bool) -> None:
        self._keeps_revisions = keeps_revisions
        self._runs: dict[int, _Run] = {}
        self._ticks = itertools.count(1)

    def is_absent(self, run: int) -> bool:
        """Whether nothing but "not there" is allowed."""
        return self._of(run).states == [None]

    def states(self, run: int) -> int:
        """Return how many states the run may be in; a load makes it one."""
        return len(self._of(run).states)

    def is_stale(self, run: int, worker: Worker) -> bool:
        """Whether others have saved the run since this worker has loaded or saved it, in this life of the run."""
        states = [state for state in self._of(run).states if state is not None and state.life == worker.life]
        return bool(states) and all(state.version != worker.version for state in states)

    def is_of_another_life(self, run: int, worker: Worker) -> bool:
        """Whether the run was deleted, and created anew, since this worker has loaded it."""
        states = self._of(run).states
        return all(state is not None and state.life != worker.life for state in states)

    def loaded(self, run: int, inputs: Mapping[str, Any], came: Record) -> Worker:
        """Learn what `load_or_create` gave. Raises `ImpossibleError` if it may not be."""
        known = self._of(run)
        fresh = State.exactly(next(self._ticks), next(self._ticks), Record.new(inputs))
        candidates = [fresh if state is None else state for state in known.states]
        fitting = [state for state in candidates if difference_from(state, came) is None]
        if not fitting:
            raise ImpossibleError(_nearest(candidates, came), len(candidates), known.last)
        found = fitting[0]
        if len(fitting) > 1:
            # The same record, by different ways: nobody knows any more who continues it.
            found = replace(found, version=next(self._ticks))
        known.states = [State.exactly(found.life, found.version, came)]
        if found is fresh:
            known.last = "it was not there, so this call has created it"
        return Worker(found.life, found.version, canonical(came.inputs), dict(came.completed))

    def saved(self, run: int, worker: Worker, outputs: Mapping[str, Any], acknowledged: bool | None) -> bool:
        """Learn how a save has ended: acknowledged, refused, or unknown (None). Return whether it may end so."""
        known = self._of(run)
        worker.takes(outputs)
        must, version = _canonical(worker.completed), next(self._ticks)
        whose = self._whose(run, worker)
        ends = (True, False) if acknowledged is None else (acknowledged,)
        states = [
            after
            for state in known.states
            for end in ends
            for after in self._after(state, worker, must, end, version, is_free=acknowledged is None)
        ]
        if not states:
            return False
        known.states = _each_once(states)
        if acknowledged is None:
            worker.is_in_doubt = True
        elif acknowledged:
            worker.version, worker.is_refusable = version, False
        ended = {True: "acknowledged", False: "refused, which changes nothing", None: "cancelled: done, or not"}
        known.last = f"a save of {', '.join(outputs) or 'nothing new'}{whose} was {ended[acknowledged]}"
        return True

    def overlapped(self, run: int, saves: Sequence[tuple[Worker, Mapping[str, Any], bool]]) -> None:
        """Learn how saves that were under way at once have ended; each may be refused."""
        known = self._of(run)
        for worker, outputs, _ in saves:
            worker.takes(outputs)
        version = next(self._ticks)
        states: list[Possible] = []
        for order in itertools.permutations(saves):
            current = known.states
            for worker, outputs, end in order:
                others = {n for each, more, _ in saves if each is worker and more is not outputs for n in more}
                must = _canonical({n: o for n, o in worker.completed.items() if n not in others})
                maybe = _canonical({n: o for n, o in worker.completed.items() if n in others})
                current = [
                    after
                    for state in current
                    for after in self._after(state, worker, must, end, version, is_free=True, maybe=maybe)
                ]
            states += current
        for worker, _, _ in saves:
            worker.is_in_doubt = True
        known.states = _each_once(states)
        told = ", ".join(f"{' and '.join(outputs)} {'acknowledged' if end else 'refused'}" for _, outputs, end in saves)
        known.last = f"saves overlapped: {told}"

    def deleted(self, run: int) -> None:
        """Learn that a delete was acknowledged."""
        known = self._of(run)
        known.states, known.last = [None], "its delete was acknowledged"

    def _of(self, run: int) -> _Run:
        return self._runs.setdefault(run, _Run())

    def _whose(self, run: int, worker: Worker) -> str:
        """Say of a worker what decides about its save; nothing, if it continues the newest state."""
        if self.is_absent(run):
            return ", after the delete, which it may not undo,"
        if self.is_of_another_life(run, worker):
            whole = "" if self._keeps_revisions else ", or all,"
            return f" by a worker of the run before, which was deleted, so that nothing{whole} of it belongs here,"
        return " by a worker that was behind" if self.is_stale(run, worker) else ""

    def _after(
        self,
        state: Possible,
        worker: Worker,
        must: Mapping[str, Value],
        acknowledged: bool,
        version: int,
        *,
        is_free: bool,
        maybe: Mapping[str, Value] | None = None,
    ) -> list[Possible]:
        """Return what a save that ends so leaves of a state; nothing, if it may not end so in that state."""
        if state is None:
            return [None]  # the run was deleted: whether told so or not, nothing brings it back
        is_current = (worker.life, worker.version) == (state.life, state.version) and not worker.is_in_doubt
        if not acknowledged:
            return [state] if is_free or not is_current or worker.is_refusable else []
        if worker.life != state.life:
            merged = state.merged(worker.inputs, {}, {**must, **(maybe or {})}, version)
            return [state] if self._keeps_revisions else [state, merged]
        if is_current and not maybe:
            return [state.continued(must, version)]
        # Whoever was behind stays so: no state gets the version that the worker has from now on.
        return [state.merged(worker.inputs, must, maybe or {}, -version)]


def _canonical(outputs: Mapping[str, Any]) -> dict[str, Value]:
    return {node: canonical(output) for node, output in outputs.items()}


def _each_once(states: Sequence[Possible]) -> list[Possible]:
    return list(dict.fromkeys(states))


def _nearest(states: Sequence[State], came: Record) -> Record:
    """Return the allowed record that `came` is most like."""
    records = [state.record_like(came) for state in states]
    return max(records, key=lambda record: _alike(record, came))


def _alike(record: Record, came: Record) -> tuple[int, int]:
    nodes = sum(
        node in came.completed and canonical(came.completed[node]) == canonical(output)
        for node, output in record.completed.items()
    )
    return (
        canonical(record.inputs) == canonical(came.inputs),
        nodes - abs(len(record.completed) - len(came.completed)),
    )
