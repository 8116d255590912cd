"""Names of nodes that stores take for one another, or for something of their own, and the refusal of one."""

from __future__ import annotations

from n00dles.errors import N00dlesError

from .expect import BrokenClause
from .ids import IdGroup, groups_of_ids
from .ids import paths as ids_that_are_paths
from .records import show
from .refusals import save_or_refusal, text_of
from .scenario import Handle, Scenario, describe, message_of, where

__all__ = ["SEPARATORS", "are_apart", "groups_of_names", "is_of_a_program", "paths"]

_OF_A_PROGRAM = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    IndexError,
    KeyError,
    NameError,
    NotImplementedError,
    RecursionError,
    TypeError,
)
"""Errors that a program meets in itself: whoever gets one does not know that it was the id, or the name."""
SEPARATORS = (":", "/", "-", "_", ".", "|", " ", "\\", "#", "\x00")
"""What may stand between the id of a run and the name of a node in a key that holds both."""
_BASE = "node"
_LENGTHS = (64, 255, 300, 1_000)
_SHOWN_OF_A_NAME = 12


def is_of_a_program(error: Exception) -> bool:
    """Whether an error is one that a program meets in itself; those of n00dles, made of one or not, are none."""
    return isinstance(error, _OF_A_PROGRAM) and not isinstance(error, N00dlesError)


def groups_of_names() -> tuple[IdGroup, ...]:
    """Return groups of names that differ, in each in one way only; and names that a store may have for its own."""
    own = ("head", "lock", ".lock", ".", "..", "index", "inputs", "completed", "order", "outputs", "run_id", "_id")
    more = ("node.json", "node.tmp", "node.new", "__proto__", "None", "0", "😺", "👩‍💻", "$set", "CON", "~", "-rf", "*")
    pairs = tuple("n" * (length - 1) + end for length in _LENGTHS for end in "ab")
    return (
        *groups_of_ids(_BASE),
        IdGroup("being what a store may have for its own", (*own, *more)),
        IdGroup("their last character, of up to 1000", pairs),
    )


def paths(outside: str) -> IdGroup:
    """Return names that are paths, none of which leads further than two folders up. `outside` is an absolute path."""
    return ids_that_are_paths(_BASE, outside)


async def are_apart(s: Scenario, group: IdGroup) -> None:
    """Save a node of each name that the store takes, and find each with its own output, also after a reopening.

    A name is taken, or refused by an error that names it; the run then stays as it was. Their order is a matter of S02.
    """
    control = await s.create()
    await s.save(control, {"plain": "facts"})
    handle = await s.create({"topic": "names"})
    await s.save(handle, {"before": "kept"})
    run_id, refused = handle.run_id, dict[str, Exception]()
    for number, name in enumerate(group.ids):
        refusal = await save_or_refusal(s, handle, {name: f"facts {number}"})
        if refusal is not None:
            _names_it(name, refusal)
            refused[name] = refusal
            handle = await _all_are_there(s, run_id, because=f"the save of node {show(name)} was refused")
    await _all_are_there(s, run_id, because=f"these are {len(group.ids)} names of nodes, each with its own output")
    if refused:
        kinds = ", ".join(sorted({type(error).__name__ for error in refused.values()}))
        s.subject.notes.append(
            f"refuses {len(refused)} of {len(group.ids)} names of nodes that differ by {group.title} ({kinds})"
        )
    whole = await s.create({"topic": "names, saved at once"})
    await s.save(whole, {name: f"facts {number}" for number, name in enumerate(group.ids) if name not in refused})
    await _all_are_there(s, whole.run_id, because="each of these names was taken alone, in another run")
    await s.delete(run_id)
    await _all_are_there(s, whole.run_id, because="only the other run, with nodes of the same names, was deleted")
    if await s.keeps_after_reopening(control.run_id):
        await _all_are_there(s, whole.run_id, because="the store was opened again, and kept a run with plain names")


async def _all_are_there(s: Scenario, run_id: str, *, because: str) -> Handle:
    handle = await s.load(run_id)
    s.expect(handle.record.by_name()).equals(s.acknowledged[run_id].by_name(), because=because)
    return handle


def _names_it(name: str, error: Exception) -> None:
    """Raise unless a refusal is a clear error that names the node: as it is, as Python shows it, or its beginning."""
    said, start = text_of(error), name[:_SHOWN_OF_A_NAME]
    named = any(form in said for form in (start, repr(start)[1:-1], ascii(start)[1:-1]))
    if named and not is_of_a_program(error) and message_of(error):
        return
    raise BrokenClause(
        f"the name {show(name)} of a node raised {describe(error)}",
        (
            *where(error),
            ("allowed", "a node of its own, or an error that says what is wrong with the name"),
            ("came", describe(error)),
            ("why", "who gets this error does not learn that it was the name of the node"),
        ),
    )
