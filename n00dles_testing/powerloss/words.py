"""What was lost, and what was not, in words that name files and bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
from n00dles_testing.powerloss.parts import Range
from n00dles_testing.powerloss.state import Lost
from n00dles_testing.powerloss.steps import Step

__all__ = ["describe", "listed", "lost", "sentence"]

SHOWN = 3
"""So many things are named in a sentence; of more, the number is told."""


def lost(step: Step, ranges: Sequence[Range] = (), *, path: str | None = None, zeros: bool = False) -> Lost:
    """Return what is missing of an operation: all of it, or of a write these bytes. `path` names the file now."""
    operation = step.operation
    name = step.path if path is None else path
    whole = not isinstance(operation, Write) or sum(end - start for start, end in ranges) == len(operation.data)
    words = describe(step, ranges, name)
    if step.during is not None:
        words += f" in call `{step.during}`"
    if zeros:
        words += " (zeros are in its place)"
    return Lost(operation, name, words, tuple(ranges), whole, zeros, step.during)


def describe(step: Step, ranges: Sequence[Range] | None = None, path: str | None = None) -> str:
    """Name an operation, or of a write these bytes: "the rename of `a.tmp` to `a`"."""
    operation, name = step.operation, f"`{(step.path if path is None else path) or '.'}`"
    if isinstance(operation, Write):
        end = operation.offset + len(operation.data)
        if operation.offset == 0 and end >= step.size and ranges in (None, [(0, end)]):
            return f"the data of {name} ({end} bytes)"
        return f"the data of {name} {_bytes([(operation.offset, end)] if ranges is None else ranges)}"
    if isinstance(operation, Rename):
        return f"the rename of `{step.path}` to `{step.to_path}`"
    if isinstance(operation, Truncate):
        return f"the {'growth' if operation.size > operation.old else 'cut'} of {name} to {operation.size} bytes"
    if isinstance(operation, Marked):
        word, _, token = operation.text.partition(" ")
        return {"INV": f"call `{token}`", "ACK": f"the acknowledgement of call `{token}`"}.get(word, operation.text)
    if isinstance(operation, Sync):
        kind = "fdatasync" if operation.data_only else "fsync"
        words = f"{kind} of {name if step.path else 'the folder'}"
        if operation.part:
            words = f"sync of {name} {_bytes([operation.part])}"
        return words + (", which failed" if operation.failed else "")
    if isinstance(operation, SyncAll):
        return "sync of everything" + (", which failed" if operation.failed else "")
    return _of_a_name(operation, name)


def _of_a_name(operation: Operation, name: str) -> str:
    if isinstance(operation, ChangeMode):
        return f"the change of the permissions of {name} to {operation.mode:03o}"
    if isinstance(operation, MakeSpecial):
        return f"the creation of the {operation.special.value} {name}"
    return f"{_NAMES[type(operation)]} {name}"


_NAMES: dict[type[Operation], str] = {
    Create: "the creation of",
    MakeFolder: "the creation of the folder",
    Symlink: "the creation of the link",
    Link: "the further name",
    Unlink: "the removal of",
}


def _bytes(ranges: Sequence[Range]) -> str:
    total = sum(end - start for start, end in ranges)
    if len(ranges) > SHOWN:
        return f"in {len(ranges)} places from byte {ranges[0][0]} ({total} bytes)"
    return listed([f"from byte {start} ({end - start} bytes)" for start, end in ranges])


def listed(words: Sequence[str]) -> str:
    """Join as a person does: "a, b and c"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def sentence(missing: Sequence[Lost], kept: str | None) -> str:
    """Say what did not reach the disk, at least one thing. `kept` is something that did, if that is worth telling."""
    words = _grouped(missing)
    if len(words) > SHOWN:
        words = [*words[: SHOWN - 1], f"{len(words) - SHOWN + 1} more operations"]
    did_not = listed(words)
    return f"{kept} reached the disk, {did_not} did not" if kept else f"{did_not} did not reach the disk"


def _grouped(missing: Iterable[Lost]) -> list[str]:
    """Return the words of each, with those of several writes of one call into one file joined."""
    groups: dict[object, list[Lost]] = {}
    for number, one in enumerate(missing):
        key = (one.path, one.during, one.zeros) if one.ranges else number
        groups.setdefault(key, []).append(one)
    return [_together(group) if len(group) > 1 else group[0].words for group in groups.values()]


def _together(group: Sequence[Lost]) -> str:
    first = group[0]
    joined: list[Range] = []
    for start, end in sorted(part for one in group for part in one.ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    words = f"the data of `{first.path}` {_bytes(joined)}"
    words += f" in call `{first.during}`" if first.during is not None else ""
    return words + (" (zeros are in its place)" if first.zeros else "")
