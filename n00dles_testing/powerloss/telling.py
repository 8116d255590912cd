"""What happened up to a crash, one moment after the other, and what became of each operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from n00dles_testing.powerloss.forcing import Forcing
from n00dles_testing.powerloss.models import Model
from n00dles_testing.powerloss.operations import Marked, Rename, Sync, SyncAll, Write
from n00dles_testing.powerloss.recording import Recording
from n00dles_testing.powerloss.state import Lost, State
from n00dles_testing.powerloss.steps import Change, NameChange, Step, steps
from n00dles_testing.powerloss.words import describe, sentence

__all__ = ["Moment", "tell"]


@dataclass(frozen=True, slots=True)
class Moment:
    """One operation on the time line of a finding, for a picture.

    `fate` is "synced" (a sync has forced it to the disk), "kept" (it happened to reach it), "partly" (some bytes of it
    did), "lost", "sync", "failed sync" or "unfinished sync" for a sync, and "mark" for a word of the program. `words`
    say what it was, `during` in which call of the store.
    """

    position: int
    words: str
    fate: str
    path: str = ""
    during: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types."""
        return asdict(self)


def tell(recording: Recording, model: Model, state: State) -> tuple[str, str, tuple[Moment, ...]]:
    """Return what reached the disk and what did not, as a sentence; when the power failed; and the time line."""
    followed = steps(recording.base, recording.operations)
    past = [step for step in followed if step.operation.entered < state.position]
    missing = {id(lost.operation): lost for lost in state.lost}
    if model.keeps_cache:
        words = "the process was killed" + (f", and {sentence(state.lost, None)}" if state.lost else "")
    else:
        words = sentence(state.lost, _worth_telling(past, missing))
    return words, _when(past, followed[len(past) :]), _timeline(past, missing, model, state.position)


def _worth_telling(past: Sequence[Step], missing: dict[int, Lost]) -> str | None:
    """Name something that was made after what is lost, and is on the disk: best of all a name of the same file."""
    first = next((step.index for step in past if id(step.operation) in missing), None)
    if first is None:
        return None
    inodes = {getattr(lost.operation, "inode", None) for lost in missing.values()}
    later = [s for s in past[first:] if isinstance(s.operation, Change) and id(s.operation) not in missing]

    def rank(step: Step) -> tuple[bool, bool, bool, int]:
        operation = step.operation
        same = getattr(operation, "inode", None) in inodes
        return same, isinstance(operation, Rename), isinstance(operation, NameChange), step.index

    best = max((step for step in later if step.index > first), key=rank, default=None)
    return None if best is None else describe(best)


def _when(past: Sequence[Step], coming: Sequence[Step]) -> str:
    """Say between which two moments the power failed."""
    after = f"after {describe(past[-1])}" if past else "at the beginning"
    return f"{after}, before {describe(coming[0])}" if coming else f"{after}, at the end"


def _timeline(past: Sequence[Step], missing: dict[int, Lost], model: Model, position: int) -> tuple[Moment, ...]:
    forcing = Forcing(past, model)
    syncs = [step.operation for step in past if isinstance(step.operation, Sync | SyncAll)]
    for sync in sorted(syncs, key=lambda sync: sync.exited):
        if sync.exited < position and not model.keeps_cache:
            forcing.complete(sync)
    moments = []
    for step in past:
        fate = _fate(step, missing, forcing.forced, position)
        moments.append(Moment(step.operation.entered, describe(step), fate, step.path, step.during))
    return tuple(moments)


def _fate(step: Step, missing: dict[int, Lost], forced: set[int], position: int) -> str:
    operation = step.operation
    if isinstance(operation, Marked):
        return "mark"
    if isinstance(operation, Sync | SyncAll):
        if operation.exited >= position:
            return "unfinished sync"
        return "failed sync" if isinstance(operation, Sync) and operation.failed else "sync"
    if lost := missing.get(id(operation)):
        return "lost" if lost.whole or not isinstance(operation, Write) else "partly"
    return "synced" if step.index in forced else "kept"
