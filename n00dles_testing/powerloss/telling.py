"""What happened up to a crash, one moment after the other, and what became of each operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from n00dles_testing.powerloss.advice import advice
from n00dles_testing.powerloss.faults_found import FaultKind
from n00dles_testing.powerloss.forcing import Forcing
from n00dles_testing.powerloss.models import Model
from n00dles_testing.powerloss.operations import (
    ChangeMode,
    Create,
    Link,
    MakeFolder,
    MakeSpecial,
    Marked,
    Operation,
    Rename,
    Symlink,
    Sync,
    SyncAll,
    Truncate,
    Unlink,
    Write,
)
from n00dles_testing.powerloss.recording import Recording
from n00dles_testing.powerloss.state import Lost, State
from n00dles_testing.powerloss.steps import Change, NameChange, Step, steps
from n00dles_testing.powerloss.words import describe, sentence

__all__ = ["Moment", "Told", "tell"]


@dataclass(frozen=True, slots=True)
class Moment:
    """One operation on the time line of a finding, for a picture.

    `fate` is "synced" (a sync has forced it to the disk), "kept" (it happened to reach it), "partly" (some bytes of it
    did), "lost", "sync", "failed sync" or "unfinished sync" for a sync, and "mark" for a word of the program. `words`
    say what it was, `during` in which call of the store; of a mark, of which call it is.

    `what` is its kind, in one word: "create", "folder", "special" (a pipe or a socket), "symlink", "link", "write",
    "truncate", "permissions", "rename", "unlink", "sync", "sync all"; "call" or "return" of a mark; "more" stands for a
    stretch that is left out. `to_path` is the new name of a rename, `size` how many bytes a write has, or a file after
    a truncation. `times` is how many operations it stands for (see `folding`).
    """

    position: int
    words: str
    fate: str
    path: str = ""
    during: str | None = None
    what: str = ""
    to_path: str = ""
    size: int = 0
    times: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Told:
    """Of a state: what reached the disk and what did not, `when` the power failed, what to do, and the time line."""

    words: str
    when: str
    fix: str
    timeline: tuple[Moment, ...]


def tell(recording: Recording, model: Model, state: State, kind: FaultKind | None = None) -> Told:
    """Put a state into words; `kind` is what is wrong with it, as far as that is known."""
    followed = steps(recording.base, recording.operations)
    past = [step for step in followed if step.operation.entered < state.position]
    missing = {id(lost.operation): lost for lost in state.lost}
    when = _when(past, followed[len(past) :])
    if model.keeps_cache:
        words = f"the process was killed {when}" + (f": {sentence(state.lost, None)}" if state.lost else "")
    elif state.lost:
        words = sentence(state.lost, _worth_telling(past, missing, state))
    else:
        words = f"the power failed {when}, and all that had been done reached the disk"
    return Told(words, when, advice(past, model, state, kind), _timeline(past, missing, model, state.position))


def _worth_telling(past: Sequence[Step], missing: dict[int, Lost], state: State) -> str | None:
    """Name something that was made after what is lost, and can be seen: best of all a new name of the same file."""
    first = next((step.index for step in past if id(step.operation) in missing), None)
    if first is None:
        return None
    inodes = {inode for lost in missing.values() if (inode := _inode(lost.operation)) is not None}
    named = {inode for _, inode in state.tree.names()}

    def rank(step: Step) -> tuple[bool, bool, bool, int]:
        operation = step.operation
        same = _inode(operation) in inodes
        return same, isinstance(operation, Rename | Link), isinstance(operation, NameChange), step.index

    later = [
        step
        for step in past[first + 1 :]
        if isinstance(step.operation, Change)
        and id(step.operation) not in missing
        and (isinstance(step.operation, Unlink) or step.operation.inode in named)
    ]
    return describe(max(later, key=rank)) if later else None


def _inode(operation: Operation) -> int | None:
    return operation.inode if isinstance(operation, Change) else None


def _when(past: Sequence[Step], coming: Sequence[Step]) -> str:
    """Say between which two moments the power failed."""
    after = "at the beginning"
    if past:
        last = past[-1].operation
        is_call = isinstance(last, Marked) and last.text.startswith("INV ")
        after = f"as {describe(past[-1])} began" if is_call else f"after {describe(past[-1])}"
    return f"{after}, before {describe(coming[0])}" if coming else f"{after}, at the end"


def _timeline(past: Sequence[Step], missing: dict[int, Lost], model: Model, position: int) -> tuple[Moment, ...]:
    forcing = Forcing(past, model)
    syncs = [step.operation for step in past if isinstance(step.operation, Sync | SyncAll)]
    for sync in sorted(syncs, key=lambda sync: sync.exited):
        if sync.exited < position and not model.keeps_cache:
            forcing.complete(sync)
    moments = []
    for step in past:
        moments.append(_moment(step, _fate(step, missing, forcing, position)))
    return tuple(moments)


def _moment(step: Step, fate: str) -> Moment:
    operation, during = step.operation, step.during
    what, size = _WHATS[type(operation)], 0
    if isinstance(operation, Marked):
        word, _, token = operation.text.partition(" ")
        what = {"INV": "call", "ACK": "return"}.get(word, "")
        during = token if what else None
    elif isinstance(operation, Write):
        size = len(operation.data)
    elif isinstance(operation, Truncate):
        size = operation.size
    return Moment(operation.entered, describe(step), fate, step.path, during, what, step.to_path, size)


_WHATS: dict[type[Operation], str] = {
    Create: "create",
    MakeFolder: "folder",
    MakeSpecial: "special",
    Symlink: "symlink",
    Link: "link",
    Unlink: "unlink",
    Rename: "rename",
    Write: "write",
    Truncate: "truncate",
    ChangeMode: "permissions",
    Sync: "sync",
    SyncAll: "sync all",
    Marked: "",
}


def _fate(step: Step, missing: dict[int, Lost], forcing: Forcing, position: int) -> str:
    operation = step.operation
    if isinstance(operation, Marked):
        return "mark"
    if isinstance(operation, Sync | SyncAll):
        if operation.exited >= position:
            return "unfinished sync"
        return "failed sync" if operation.failed else "sync"
    if lost := missing.get(id(operation)):
        return "lost" if lost.whole or not isinstance(operation, Write) else "partly"
    return "synced" if forcing.has_forced(step) else "kept"
