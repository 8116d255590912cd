"""What makes the bytes of a file count: it, or a folder above it, gets a name, or something else needs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from n00dles_testing.powerloss.operations import Create, Link, Rename, Unlink, Write
from n00dles_testing.powerloss.state import Lost, State
from n00dles_testing.powerloss.steps import NameChange, Step
from n00dles_testing.powerloss.words import describe

__all__ = ["needed_by", "removed_after"]


def needed_by(written: Step, lost: Lost, state: State, past: Sequence[Step]) -> str:
    """Say what needs the bytes of a file that were lost: "it is renamed", "the rename of …"; empty if nothing does."""
    operation = written.operation
    assert not isinstance(operation, NameChange)
    inode = getattr(operation, "inode", 0)
    for step in past:
        if isinstance(step.operation, Rename | Link) and step.operation.inode == inode:
            return "it is renamed" if isinstance(step.operation, Rename) else f"it gets the name `{step.path}`"
    gone = {id(each.operation) for each in state.lost}
    above = set(_above(inode, past))
    later = [
        step
        for step in past[past.index(written) + 1 :]
        if id(step.operation) not in gone and (step.during == written.during or written.during is None)
    ]
    for step in later:
        if isinstance(step.operation, Rename) and step.operation.inode in above:
            return describe(step)
    if pointer := next((step for step in later if isinstance(step.operation, Rename | Link)), None):
        return describe(pointer)
    return _change_elsewhere(written, inode, state, past) or _removal_after_creation(inode, past, later)


def removed_after(written: Step, state: State, past: Sequence[Step]) -> str:
    """Name another file whose removal has reached the disk and came after the bytes that were lost, if there is one.

    In a repair that is what they were repaired from.
    """
    gone = {id(each.operation) for each in state.lost}
    inode = getattr(written.operation, "inode", 0)
    for step in past[past.index(written) + 1 :]:
        is_other = isinstance(step.operation, Unlink) and step.operation.inode != inode
        if is_other and id(step.operation) not in gone:
            return describe(step)
    return ""


def _above(inode: int, past: Sequence[Step]) -> Iterator[int]:
    """Give the folders in which a file was made, from the inmost one on."""
    folders: dict[int, int] = {}
    for step in past:
        operation = step.operation
        if isinstance(operation, NameChange):
            folders[operation.inode] = operation.to_folder if isinstance(operation, Rename) else operation.folder
    while (inode := folders.get(inode, 0)) not in (0, 1):
        yield inode


def _change_elsewhere(written: Step, inode: int, state: State, past: Sequence[Step]) -> str:
    """Name the file that is changed in place once these bytes, a copy of it, are there. Nobody was told by then."""
    if written.during is None or written.during in state.acknowledged:
        return ""
    for step in past[past.index(written) + 1 :]:
        operation = step.operation
        is_in_place = isinstance(operation, Write) and operation.inode != inode and operation.offset < step.size
        if is_in_place and step.during == written.during:
            return f"`{step.path}` is changed"
    return ""


def _removal_after_creation(inode: int, past: Sequence[Step], later: Sequence[Step]) -> str:
    """Name what is removed once a new file is there in place of it, in the same call."""
    made = next((step for step in past if isinstance(step.operation, Create) and step.operation.inode == inode), None)
    for step in later:
        is_other = isinstance(step.operation, Unlink) and step.operation.inode != inode
        if made is not None and is_other and step.during == made.during:
            return describe(step)
    return ""
