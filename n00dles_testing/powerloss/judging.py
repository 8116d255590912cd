"""The judge: what is wrong with what a store makes of a state of the disk, if anything.

Five questions are asked, and the first that is answered badly is the fault: does it open and load (CORRUPT)? Is that
what was acknowledged (LOST_ACK, PHANTOM, MIXED)? Does it load the same again, also when opened again (UNSTABLE)? Can
one go on saving (WEDGED)? And would it survive a second power loss while it opens and loads (RECOVERY), with all that
had been acknowledged before the first (LOST_IN_RECOVERY)?
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, islice, takewhile
from typing import Any

from .advice import cause
from .comparing import Expected, compare
from .contents import Content
from .examining import NEXT, Examiner, Seen, Step
from .faults_found import Fault, FaultKind
from .models import Model
from .recording import Recording
from .shrinking import shrink
from .state import State
from .states import Candidate, candidates
from .telling import tell
from .tree import Tree

__all__ = ["Judge", "Rules", "crash_of_recovery", "fault_of", "rules_for"]

RECOVERY_BUDGET = 50
"""States of a second power loss that are tried, of one recovery."""

Rules = Callable[[Seen, State], Fault | None]
"""Say what is wrong with what was seen, by what had been acknowledged and invoked in a state: all but recoveries."""

_TAKES = {
    FaultKind.LOST_ACK: "takes what was acknowledged before the first",
    FaultKind.PHANTOM: "leaves what was never saved",
    FaultKind.MIXED: "mixes what was saved",
}
"""What a second power loss does to what is loaded."""
_KINDS = 2
"""Of faults that a second power loss may show: it does not open and go on, and what it loads is wrong."""


def fault_of(seen: Seen, compared: Callable[[Any], Fault | None]) -> Fault | None:
    """Say what is wrong with what was seen of one state, by all questions but the last.

    `compared` is `compare` with what had been acknowledged and invoked.
    """
    values = seen.values
    if seen.failed is Step.LOAD:
        return Fault(FaultKind.CORRUPT, f"it does not open and load: {seen.how}")
    if fault := compared(values[Step.LOAD]):
        return fault
    for step, when in ((Step.LOAD_AGAIN, "loaded again"), (Step.REOPEN, "closed, opened and loaded again")):
        if seen.failed is step:
            return Fault(FaultKind.UNSTABLE, f"it loads once; when {when}: {seen.how}")
        if step in values and values[step] != values[Step.LOAD]:
            told = f"{values[Step.LOAD]!r} was loaded at first, and {values[step]!r} when {when}"
            return Fault(FaultKind.UNSTABLE, told)
    if seen.failed is not None:
        what = "the next save does not work" if seen.failed is Step.SAVE else "after the next save it does not load"
        return Fault(FaultKind.WEDGED, f"it loads, but {what}: {seen.how}")
    for step in (Step.SAVE, Step.LOAD_NEXT):
        if values.get(step, NEXT) != NEXT:
            return Fault(FaultKind.WEDGED, f"the next save was acknowledged, and {values[step]!r} is loaded after it")
    return None


def rules_for(expected: Expected[Any], is_mixed: Callable[[Any], bool] = lambda value: False) -> Rules:
    """Return the rules for a workload that leaves what is expected, of values that are compared by `==`."""

    def rules(seen: Seen, state: State) -> Fault | None:
        return fault_of(
            seen,
            lambda loaded: compare(loaded, expected, state.acknowledged, state.invoked, is_mixed=is_mixed),
        )

    return rules


def crash_of_recovery(
    recovery: Recording,
    model: Model,
    judged: Callable[[Tree], Fault | None],
    *,
    budget: int = RECOVERY_BUDGET,
    seed: int = 0,
    goes_on: Callable[[], bool] = lambda: True,
    all_kinds: bool = True,
) -> Fault | None:
    """Say whether a second power loss is survived, which comes while the store recovers from the first.

    `recovery` is the recording of opening and loading a state which itself is judged well. `judged` judges what is
    there after the second power loss, by what had been acknowledged and invoked before the first. Before each state it
    is asked whether it `goes_on`. After a fault it looks for one of the other kind as well, if `all_kinds` are to be
    found, and unless the store hangs.
    """
    second = _SecondLoss(recovery, model, judged)
    coming = islice(candidates(recovery, model, budget, seed), budget)
    found: dict[FaultKind, Fault] = {}
    for candidate in takewhile(lambda _: goes_on(), coming):
        fault = judged(candidate.state.tree)
        if fault is not None and (kind := _after_a_second(fault)[0]) not in found:
            smaller = partial(second.smaller, candidate, fault)
            found[kind] = replace(second.told(candidate.state, fault), smaller=smaller)
            if fault.hung or len(found) == (_KINDS if all_kinds else 1):
                break
    if not found:
        return None
    first, *others = found.values()
    return replace(first, besides=tuple(others))


def _after_a_second(fault: Fault) -> tuple[FaultKind, str]:
    """Return of which kind a fault is when a second power loss shows it, and what that does."""
    if fault.kind in _TAKES:
        return FaultKind.LOST_IN_RECOVERY, _TAKES[fault.kind]
    return FaultKind.RECOVERY, "is not survived"


@dataclass(frozen=True, slots=True)
class _SecondLoss:
    """A power loss in the midst of a recovery, and what it took."""

    recovery: Recording
    model: Model
    judged: Callable[[Tree], Fault | None]

    def smaller(self, candidate: Candidate, fault: Fault, seconds: float) -> Fault:
        """Return the fault with less lost in the second power loss, if that is found in this time."""
        state, fault = shrink(candidate, fault, lambda state: self.judged(state.tree), seconds=seconds)
        return self.told(state, fault)

    def told(self, state: State, fault: Fault) -> Fault:
        """Return the fault as one of the recovery."""
        what = "kill" if self.model.keeps_cache else "power loss"
        kind, does = _after_a_second(fault)
        told = tell(self.recovery, self.model, state, kind)
        return Fault(
            kind,
            f"a second {what}, while it opens and loads, {does}: {fault.kind}: {fault.message}",
            (
                *fault.details,
                f"the second {what} comes {told.when}",
                *(f"lost in the second: {lost.words}" for lost in state.lost),
            ),
            fault.hung,
            told.fix,
            frozenset(f"{kind} in the recovery" for kind in cause(state.lost, {}) or ("a crash",)),
        )


class Judge:
    """Judges the states of one recording, under one model after the other. What is the same is looked at once.

    Of recoveries that are alike (the state has files of the same names and sizes, and loads the same) one is crashed,
    until that finds a fault; of different ones at most `recoveries` under each model. Where one has had a fault, those
    like it are only crashed until they have one, too.
    """

    def __init__(
        self,
        examiner: Examiner,
        recorded: Callable[[str], Recording],
        rules: Rules,
        *,
        folder: str,
        seed: int = 0,
        recoveries: int = 40,
    ) -> None:
        """`recorded` records how the files in a folder are opened, loaded and closed; `folder` is for states."""
        self._examiner = examiner
        self._recorded = recorded
        self._rules = rules
        self._folder = folder
        self._seed = seed
        self._recoveries = recoveries
        self._seen: dict[tuple[bytes, Step], Seen] = {}
        self._recordings: dict[bytes, Recording] = {}
        self._survived: dict[str, set[Any]] = {}
        self._failed: dict[str, set[Any]] = {}
        self._numbers = count(1)

    def under(self, model: Model) -> Callable[[str, State], Fault | None]:
        """Return what judges a state of this model whose files lie in a folder."""

        def judge(folder: str, state: State) -> Fault | None:
            seen = self._look(state.tree, Step.LOAD_NEXT, folder)
            fault = self._rules(seen, state)
            if fault is None and seen.wrote:
                fault = self._crash_again(state, repr(seen.values[Step.LOAD]), model)
            return fault

        return judge

    def _crash_again(self, state: State, loaded: str, model: Model) -> Fault | None:
        """Crash the recovery of a state as well, unless that of another state like it has survived this."""
        tree = state.tree
        survived = self._survived.setdefault(model.name, set())
        failed = self._failed.setdefault(model.name, set())
        alike = (loaded, *((path, _size(tree, inode)) for path, inode in tree.names()))
        if alike in survived or len(survived) >= self._recoveries:
            return None
        if tree.digest() not in self._recordings:
            with self._written(tree) as folder:
                self._recordings[tree.digest()] = self._recorded(folder)
        recovery = self._recordings[tree.digest()]

        def judged(left: Tree) -> Fault | None:
            return self._rules(self._look(left, Step.LOAD), state)

        fault = crash_of_recovery(recovery, model, judged, seed=self._seed, all_kinds=alike not in failed)
        (survived if fault is None else failed).add(alike)
        return fault

    def _look(self, tree: Tree, last: Step, folder: str | None = None) -> Seen:
        key = (tree.digest(), last)
        if key not in self._seen:
            if folder is not None:
                self._seen[key] = self._examiner.examine(folder, last=last)
            else:
                with self._written(tree) as written:
                    self._seen[key] = self._examiner.examine(written, last=last)
        return self._seen[key]

    @contextmanager
    def _written(self, tree: Tree) -> Iterator[str]:
        folder = os.path.join(self._folder, f"second-{next(self._numbers)}")
        tree.write_to(folder)
        try:
            yield folder
        finally:
            shutil.rmtree(folder)


def _size(tree: Tree, inode: int) -> int:
    node = tree.node(inode)
    return node.size if isinstance(node, Content) else 0
