"""What is wrong with a store that is opened on what a disk held after a power loss, if anything.

Five questions, and the first that is answered badly is the fault: does it open and load (CORRUPT)? Is that what was
acknowledged (LOST_ACK, PHANTOM, MIXED)? Does it load the same again, also when opened again (UNSTABLE)? Can one go on
saving (WEDGED)? Would it survive a second power loss while it opens and loads (RECOVERY)?
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from ..powerloss.comparing import compare
from ..powerloss.examining import Examiner, Seen, Step
from ..powerloss.faults_found import Fault, FaultKind
from ..powerloss.judging import crash_of_recovery
from ..powerloss.models import Model
from ..powerloss.recording import Recording
from ..powerloss.state import State
from ..powerloss.tree import Tree
from .child import still_alive
from .power_opened import OpenedStore
from .power_workload import AFTERWARDS, Workload
from .records import Record, difference

__all__ = ["PowerJudge"]

_UNSTABLE = ((Step.LOAD_AGAIN, "loaded again"), (Step.REOPEN, "closed, opened and loaded again"))
_LOOKS_OF_A_PROCESS = 50
"""After so many states another process looks at the next ones."""
_TIME_LIMIT = 10.0
"""So long (seconds) a call may take that opens a store on a state, loads from it or saves."""


class PowerJudge:
    """Judges the states of one recording, under one model after the other. What is the same is looked at once.

    One process looks at many states. A store may keep in its process what it has seen of its files, though, or leave
    something open; so a fault counts only if a new process sees it as well, and a store whose process remembers what is
    no longer there gets a new one for each state. Use it as a context.
    """

    def __init__(
        self,
        workload: Workload,
        open_at: Callable[[str], OpenedStore],
        recorded: Callable[[str], Recording],
        *,
        folder: str,
        seed: int,
        recoveries: int,
    ) -> None:
        """`recorded` records how the files in a folder are opened and loaded; `folder` is for states.

        So many different `recoveries` are crashed as well, under each model.
        """
        self._workload = workload
        self._expected = workload.expected()
        self._examiner = Examiner(open_at, time_limit=_TIME_LIMIT)
        self._recorded = recorded
        self._folder = folder
        self._seed = seed
        self._most_recoveries = recoveries
        self._seen: dict[tuple[bytes, Step], Seen] = {}
        self._recordings: dict[bytes, Recording] = {}
        self._survived: dict[str, set[Any]] = {}
        self._in_new: set[tuple[bytes, Step]] = set()
        self._looks = 0
        self._remembers: bool | None = None

    def __enter__(self) -> PowerJudge:
        return self

    def __exit__(self, *_: object) -> None:
        self._examiner.close()

    def under(self, model: Model) -> Callable[[str, State], Fault | None]:
        """Return what judges a state of this model whose files lie in a folder."""

        def judge(folder: str, state: State) -> Fault | None:
            seen = self._look(state.tree, Step.LOAD_NEXT, folder)
            fault = self._fault_of(seen, state)
            if fault is not None:
                seen = self._look(state.tree, Step.LOAD_NEXT, is_new=True)
                fault = self._fault_of(seen, state)
            if fault is None and seen.wrote:
                fault = self._crash_again(state, seen, model)
            return fault

        return judge

    def _fault_of(self, seen: Seen, state: State) -> Fault | None:
        """Answer all questions but the last."""
        values = seen.values
        if seen.failed is Step.LOAD:
            return Fault(FaultKind.CORRUPT, f"it does not open and load: {seen.how}")
        loaded = _records(values[Step.LOAD])
        if fault := self._compared(loaded, state):
            return fault
        for step, when in _UNSTABLE:
            if seen.failed is step:
                return Fault(FaultKind.UNSTABLE, f"it loads once; when {when}: {seen.how}")
            if step in values and (other := _difference(loaded, _records(values[step]))):
                return Fault(FaultKind.UNSTABLE, f"when {when} it gives something else: {other}")
        if seen.failed is not None:
            what = "the next save does not work" if seen.failed is Step.SAVE else "after the next save it does not load"
            return Fault(FaultKind.WEDGED, f"it loads, but {what}: {seen.how}")
        wanted = {run_id: record.after(AFTERWARDS) for run_id, record in loaded.items()}
        for step in (Step.SAVE, Step.LOAD_NEXT):
            if step in values and (other := _difference(wanted, _records(values[step]))):
                return Fault(FaultKind.WEDGED, f"the next save was acknowledged, and is not there: {other}")
        return None

    def _compared(self, loaded: dict[str, Record], state: State) -> Fault | None:
        for run_id, record in loaded.items():
            fault = compare(
                record,
                self._expected[run_id],
                state.acknowledged,
                state.invoked,
                is_mixed=partial(self._is_mixed, run_id),
                named=str,
            )
            if fault is not None:
                return Fault(fault.kind, f"run {run_id!r}: {fault.message}", fault.details)
        return None

    def _is_mixed(self, run_id: str, record: Record) -> bool:
        """Whether all of it was saved once, if not together."""
        expected = self._expected[run_id]
        known = [expected.before, *expected.after.values()]
        return all(
            any(node in each.completed and difference(each.completed[node], output) is None for each in known)
            for node, output in record.completed.items()
        )

    def _crash_again(self, state: State, seen: Seen, model: Model) -> Fault | None:
        """Crash the recovery of a state as well, unless that of another state like it has survived this."""
        survived = self._survived.setdefault(model.name, set())
        alike = (repr(seen.values[Step.LOAD]), *(path for path, _ in state.tree.names()))
        if alike in survived or len(survived) >= self._most_recoveries:
            return None
        digest = state.tree.digest()
        if digest not in self._recordings:
            with self._written(state.tree) as folder:
                self._recordings[digest] = self._recorded(folder)

        def judged(tree: Tree) -> Fault | None:
            fault = self._fault_of(self._look(tree, Step.LOAD), state)
            return fault and self._fault_of(self._look(tree, Step.LOAD, is_new=True), state)

        fault = crash_of_recovery(self._recordings[digest], model, judged, seed=self._seed)
        if fault is None:
            survived.add(alike)
        return fault

    def _look(self, tree: Tree, last: Step, folder: str | None = None, *, is_new: bool = False) -> Seen:
        """Return what is seen of a state, whose files lie in `folder` if they do; in a new process, if it must be."""
        key = (tree.digest(), last)
        if key in self._seen and not (is_new and key not in self._in_new):
            return self._seen[key]
        if self._remembers is None:
            self._remembers = self._finds_what_is_gone(tree)
        if is_new or self._remembers or self._looks % _LOOKS_OF_A_PROCESS == 0:
            self._examiner.close()
        if is_new or self._remembers:
            self._in_new.add(key)
        self._looks += 1
        still_alive()
        if folder is not None:
            self._seen[key] = self._examiner.examine(folder, last=last)
        else:
            with self._written(tree) as written:
                self._seen[key] = self._examiner.examine(written, last=last)
        return self._seen[key]

    def _finds_what_is_gone(self, tree: Tree) -> bool:
        """Whether a process that has looked at a state still sees something of it when its files are gone."""
        with self._written(tree) as folder:
            self._examiner.examine(folder, last=Step.LOAD)
        with self._written(Tree()) as folder:
            seen = self._examiner.examine(folder, last=Step.LOAD)
        if seen.failed is not None:
            return True
        found = _records(seen.values[Step.LOAD])
        return any(found[run_id] != Record.new(inputs) for run_id, inputs in self._workload.inputs.items())

    @contextmanager
    def _written(self, tree: Tree) -> Iterator[str]:
        folder = os.path.join(self._folder, "again")
        tree.write_to(folder)
        try:
            yield folder
        finally:
            shutil.rmtree(folder)


def _records(loaded: dict[str, Any]) -> dict[str, Record]:
    return {run_id: Record.from_dict(record) for run_id, record in loaded.items()}


def _difference(wanted: dict[str, Record], came: dict[str, Record]) -> str | None:
    """Say how the first run that differs does."""
    for run_id, record in wanted.items():
        if other := difference(record, came[run_id]):
            return f"run {run_id!r}: {other}"
    return None
