"""What a store has to do so that it survives what it did not: a sentence for each kind of lost operation."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from n00dles_testing.powerloss.faults_found import FaultKind
from n00dles_testing.powerloss.models import Model
from n00dles_testing.powerloss.naming import needed_by, removed_after
from n00dles_testing.powerloss.operations import ChangeMode, Rename, Sync, SyncAll, Truncate, Unlink, Write
from n00dles_testing.powerloss.state import Lost, State
from n00dles_testing.powerloss.steps import Step

__all__ = ["advice", "cause"]

_FINAL = (
    "take a failed sync as final: write the data again, to a new file, and sync that, before anything is acknowledged"
)
_ACKNOWLEDGE_LAST = (
    "acknowledge only after the change and its syncs: all that had been done by then has reached the disk, "
    "and what a store does after it has acknowledged may never be done"
)
_REMOVE_LAST = (
    "let a repair remove what it repairs from (a journal, a copy) last, once all that it has written is synced"
)
_OF_A_LOG = (
    "give each entry of {} a checksum, take one that does not pass for the end, and cut it off (and sync that) before "
    "anything is appended"
)
_IN_ONE_STEP = "make the change in one step: write a temporary file, and rename it over the old one"
_IN_ONE_SYNCED_STEP = "make the change in one step: write a temporary file, sync it, and rename it over the old one"


def advice(past: Sequence[Step], model: Model, state: State, kind: FaultKind | None = None) -> str:
    """Say what to do, by what was lost in a state; `past` is what had happened. See fsync(2), NOTES, on folders."""
    if kind is FaultKind.LOST_ACK and not state.lost:
        return _ACKNOWLEDGE_LAST
    if kind is FaultKind.LOST_IN_RECOVERY and (model.keeps_cache or not state.lost):
        return _REMOVE_LAST
    if model.keeps_cache:
        return _IN_ONE_STEP
    if any(isinstance(step.operation, Sync | SyncAll) and step.operation.failed for step in past):
        return _FINAL
    if not state.lost:
        return _IN_ONE_SYNCED_STEP
    return "; ".join(dict.fromkeys(_for_one(lost, state, past, kind) for lost in state.lost))


def _for_one(lost: Lost, state: State, past: Sequence[Step], kind: FaultKind | None) -> str:
    operation, name = lost.operation, f"`{lost.path}`"
    step = next(step for step in past if step.operation is operation)
    is_acknowledged = any(token in state.acknowledged for token in _tokens(lost))
    before = "before the call returns" if is_acknowledged else "before anything is done that needs it"
    if isinstance(operation, Write | Truncate):
        needs = needed_by(step, lost, state, past)
        if kind is FaultKind.LOST_IN_RECOVERY:
            needs = needs or removed_after(step, state, past)
        if needs:
            said = f"sync `{step.path}` (os.fsync) before {needs}"
        elif is_acknowledged:
            what = "is written" if isinstance(operation, Write) else "has changed its size"
            said = f"sync {name} (os.fsync) after it {what}, {before}"
        elif isinstance(operation, Write) and 0 < step.size <= operation.offset:
            said = _OF_A_LOG.format(name)
        else:
            said = f"{_IN_ONE_SYNCED_STEP}, instead of changing {name} where it is"
        return said + _of_sqlite(lost.path, "FULL")
    if isinstance(operation, ChangeMode):
        return f"sync {name} (os.fsync) after the change of its permissions, {before}"
    done = "rename" if isinstance(operation, Rename) else "removal" if isinstance(operation, Unlink) else "creation"
    folder = f"the folder{_in_words(step)} (os.open it, and os.fsync the descriptor)"
    return f"sync {folder} after the {done} of {name}, {before}" + _of_sqlite(lost.path, "EXTRA")


def _in_words(step: Step) -> str:
    """Name the folders of a name, or of both of a rename; the location itself is just "the folder"."""
    folders = dict.fromkeys(os.path.dirname(path) for path in (step.to_path, step.path) if path)
    return "" if not any(folders) else " " + " and ".join(f"`{folder or '.'}`" for folder in folders)


def _of_sqlite(path: str, setting: str) -> str:
    """Name the setting with which SQLite does it; see https://www.sqlite.org/pragma.html#pragma_synchronous."""
    is_sqlite = path.endswith(("-journal", "-wal"))
    return f"; SQLite does with PRAGMA synchronous = {setting}" if is_sqlite else ""


def cause(lost: Sequence[Lost], calls: Mapping[str, str]) -> frozenset[str]:
    """Say which kinds of operations were lost, such as "rename in save"; `calls` name what each token's call is."""
    return frozenset(_kinds(lost, calls))


def _kinds(lost: Sequence[Lost], calls: Mapping[str, str]) -> Iterator[str]:
    for one in lost:
        call = " or ".join(dict.fromkeys(calls[token] for token in _tokens(one) if token in calls))
        yield f"{_kind(one)} in {call}" if call else _kind(one)


def _tokens(lost: Lost) -> list[str]:
    """Return those of the calls that may have made it: "5 or 6" of two at the same time."""
    return (lost.during or "").split(" or ")


def _kind(lost: Lost) -> str:
    if isinstance(lost.operation, Write):
        return "data"
    if isinstance(lost.operation, Truncate):
        return "size"
    if isinstance(lost.operation, ChangeMode):
        return "permissions"
    if isinstance(lost.operation, Rename):
        return "rename"
    return "removal" if isinstance(lost.operation, Unlink) else "creation"
