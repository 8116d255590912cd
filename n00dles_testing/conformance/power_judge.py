"""What is wrong with a store that is opened on what a disk held after a power loss, if anything.

Five questions, and the first that is answered badly is the fault: does it open and load (CORRUPT)? Is that what was
acknowledged (LOST_ACK, PHANTOM, MIXED)? Does it load the same again, also when opened again (UNSTABLE)? Can one go on
saving, and does nothing hang (WEDGED)? Would it survive a second power loss while it opens and loads (RECOVERY), with
all that had been acknowledged before the first (LOST_IN_RECOVERY)?
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..powerloss.comparing import compare
from ..powerloss.contents import Content
from ..powerloss.examining import Examiner, Seen, Step
from ..powerloss.faults_found import Fault, FaultKind
from ..powerloss.judging import crash_of_recovery
from ..powerloss.models import Model
from ..powerloss.placing import place
from ..powerloss.recording import Recording, Unfollowable
from ..powerloss.state import State
from ..powerloss.tree import Tree
from .child import still_alive
from .power_opened import OpenedStore
from .power_workload import AFTERWARDS, Workload
from .records import Record, difference

__all__ = ["PowerJudge", "Recoveries"]

_UNSTABLE = ((Step.LOAD_AGAIN, "loaded again"), (Step.REOPEN, "closed, opened and loaded again"))
_HUNG = "it did not come back within"
"""So begins what an `Examiner` says of a hang."""
_WHEN = {
    Step.LOAD: "when it opens and loads",
    Step.LOAD_AGAIN: "when loaded again",
    Step.REOPEN: "when closed, opened and loaded again",
    Step.SAVE: "in the next save",
    Step.LOAD_NEXT: "after the next save",
}
_OF_THE_NEXT_SAVE = "acknowledge a save only once the change is made, and what is left of another one cannot undo it"
_SEARCHED = 3
"""So many recoveries that are not survived are searched for a fault of every kind."""
_LOOKS_OF_A_PROCESS = 50
"""After so many states another process looks at the next ones."""


@dataclass(slots=True)
class Recoveries:
    """Of which states the recovery is crashed as well, under one model: `most` of them, early and late ones.

    One that is like another one, which has survived, shows nothing new. A store may also change its files on every
    state, harmlessly; so some are of states of the first half of the recording, which ends at `end`, and some of the
    second; some of those in which a write is torn, and some of the others. `crashed` counts those that were survived.
    `unfollowed` says why the calls of one of them did not tell what happened.
    """

    most: int
    end: int
    crashed: int = 0
    unfollowed: str = ""
    _known: set[Any] = field(default_factory=set)
    _failed: set[Any] = field(default_factory=set)
    _groups: Counter[tuple[bool, bool]] = field(default_factory=Counter)

    def wants(self, state: State, alike: Any) -> bool:
        """Whether this one is crashed; `alike` is equal for states that are recovered in the same way.

        On a disk without a file nothing is recovered: what is done there is the creation with which the recording
        begins, and that is crashed everywhere.
        """
        if not any(state.tree.names()):
            return False
        has_room = self._groups.total() < self.most and self._groups[self._group(state)] < math.ceil(self.most / 4)
        return has_room and alike not in self._known

    def add(self, state: State, alike: Any) -> None:
        """Have no other one like this crashed."""
        self._known.add(alike)
        self._groups[self._group(state)] += 1

    def fail(self, alike: Any) -> None:
        """Have others like this one crashed only until they show a fault as well: it was not survived."""
        self._failed.add(alike)

    def wants_all_kinds(self, alike: Any) -> bool:
        """Whether faults of all kinds are looked for: that takes its time, so of a few that differ."""
        return alike not in self._failed and len(self._failed) < _SEARCHED

    def _group(self, state: State) -> tuple[bool, bool]:
        return 2 * state.position > self.end, any(not lost.whole for lost in state.lost)


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
        time_limit: float = 10.0,
        warm_up: Callable[[], object] = lambda: None,
        on_wait: Callable[[], object] = still_alive,
    ) -> None:
        """`recorded` records how the files in a folder are opened and loaded.

        `folder` is for all states: the place in which the workload was recorded. To open the store, to load all from
        it, or to save, may take `time_limit` seconds; `warm_up` imports what that needs. `on_wait` is called now and
        then.
        """
        self._workload = workload
        self._expected = workload.expected()
        self._examiner = Examiner(open_at, time_limit=time_limit, warm_up=warm_up, on_wait=on_wait)
        self._on_wait = on_wait
        self._recorded = recorded
        self._folder = folder
        self._seed = seed
        self._seen: dict[tuple[bytes, Step], Seen] = {}
        self._recordings: dict[bytes, Recording] = {}
        self._in_new: set[tuple[bytes, Step]] = set()
        self._looks = 0
        self._remembers: bool | None = None

    def __enter__(self) -> PowerJudge:
        return self

    def __exit__(self, *_: object) -> None:
        self._examiner.close()

    def under(
        self, model: Model, recoveries: Recoveries, *, until: float = math.inf
    ) -> Callable[[str, State], Fault | None]:
        """Return what judges a state of this model whose files lie in a folder.

        No recovery is crashed after `until`, as `time.monotonic` has it.
        """

        def judge(folder: str, state: State) -> Fault | None:
            seen = self._look(state.tree, Step.LOAD_NEXT, is_there=folder == self._folder)
            fault = self._fault_of(seen, state)
            if fault is not None and not fault.hung:
                seen = self._look(state.tree, Step.LOAD_NEXT, is_new=True)
                fault = self._fault_of(seen, state)
            if fault is None and seen.wrote:
                fault = self._crash_again(state, seen, model, recoveries, until)
            return fault

        return judge

    def _fault_of(self, seen: Seen, state: State) -> Fault | None:
        """Answer all questions but the last."""
        values = seen.values
        if seen.failed is not None and seen.how.startswith(_HUNG):
            return Fault(FaultKind.WEDGED, f"it hangs {_WHEN[seen.failed]}: {seen.how}", hung=True)
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
                told = f"the next save was acknowledged, and is not there: {other}"
                return Fault(FaultKind.WEDGED, told, fix=_OF_THE_NEXT_SAVE)
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

    def _crash_again(
        self, state: State, seen: Seen, model: Model, recoveries: Recoveries, until: float
    ) -> Fault | None:
        """Crash the recovery of a state as well, if it is one of those for which this is done."""
        names = ((path, _size(state.tree, inode)) for path, inode in state.tree.names())
        alike = (repr(seen.values[Step.LOAD]), *names)
        if not recoveries.wants(state, alike) or time.monotonic() > until:
            return None
        digest = state.tree.digest()
        try:
            if digest not in self._recordings:
                self._put(state.tree)
                self._recordings[digest] = self._recorded(self._folder)
        except Unfollowable as reason:
            recoveries.unfollowed = str(reason)
            recoveries.add(state, alike)
            return None

        def judged(tree: Tree) -> Fault | None:
            fault = self._fault_of(self._look(tree, Step.LOAD), state)
            if fault is None or fault.hung:
                return fault
            return self._fault_of(self._look(tree, Step.LOAD, is_new=True), state)

        def goes_on() -> bool:
            return time.monotonic() < until

        fault = crash_of_recovery(
            self._recordings[digest],
            model,
            judged,
            seed=self._seed,
            goes_on=goes_on,
            all_kinds=recoveries.wants_all_kinds(alike),
        )
        if fault is not None:
            recoveries.fail(alike)
        elif goes_on():
            recoveries.add(state, alike)
            recoveries.crashed += 1
        return fault

    def _look(self, tree: Tree, last: Step, *, is_there: bool = False, is_new: bool = False) -> Seen:
        """Return what is seen of a state, whose files may lie there already; in a new process, if it must be."""
        key = (tree.digest(), last)
        if key in self._seen and not (is_new and key not in self._in_new):
            return self._seen[key]
        if self._remembers is None:
            self._remembers = self._finds_what_is_gone(tree)
            is_there = False
        if is_new or self._remembers or self._looks % _LOOKS_OF_A_PROCESS == 0:
            self._examiner.close()
        if is_new or self._remembers:
            self._in_new.add(key)
        self._looks += 1
        self._on_wait()
        if not is_there:
            self._put(tree)
        self._seen[key] = self._examiner.examine(self._folder, last=last)
        return self._seen[key]

    def _finds_what_is_gone(self, tree: Tree) -> bool:
        """Whether a process that has looked at a state still sees something of it when its files are gone."""
        self._put(tree)
        self._examiner.examine(self._folder, last=Step.SAVE)
        self._put(Tree())
        seen = self._examiner.examine(self._folder, last=Step.LOAD)
        if seen.failed is not None:
            return True
        found = _records(seen.values[Step.LOAD])
        return any(found[run_id] != Record.new(inputs) for run_id, inputs in self._workload.inputs.items())

    def _put(self, tree: Tree) -> None:
        """Have the files of a state in the place of states, and nothing of the one before."""
        try:
            place(tree, self._folder)
        except OSError:  # who has looked at that one still writes there
            self._examiner.close()
            place(tree, self._folder)


def _size(tree: Tree, inode: int) -> int:
    node = tree.node(inode)
    return node.size if isinstance(node, Content) else 0


def _records(loaded: dict[str, Any]) -> dict[str, Record]:
    return {run_id: Record.from_dict(record) for run_id, record in loaded.items()}


def _difference(wanted: dict[str, Record], came: dict[str, Record]) -> str | None:
    """Say how the first run that differs does."""
    for run_id, record in wanted.items():
        if other := difference(record, came[run_id]):
            return f"run {run_id!r}: {other}"
    return None
