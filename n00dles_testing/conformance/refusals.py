"""A save that is refused: by which error, and what that says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .expect import BrokenClause
from .scenario import Handle, Scenario, describe, message_of

__all__ = ["expect_named", "save_or_refusal", "text_of"]


async def save_or_refusal(s: Scenario, handle: Handle, outputs: Mapping[str, Any]) -> Exception | None:
    """Save as `Scenario.save` does; return the exception that the store raised instead, if it did."""
    try:
        await s.save(handle, outputs)
    except BrokenClause as broken:
        if not isinstance(broken.__cause__, Exception):
            raise
        return broken.__cause__
    return None


def expect_named(error: Exception, name: str, kind: str) -> None:
    """Return if a refusal names the node or input; raise `BrokenClause` if it does not."""
    if name not in text_of(error):
        raise BrokenClause(
            f"the refusal does not name the {kind} {name!r}",
            (
                ("allowed", f"an error that names {name!r}"),
                ("came", describe(error)),
                ("why", f"whoever reads it has a run of many, and must find the {kind} that cannot be stored"),
            ),
        )


def text_of(error: BaseException) -> str:
    """Return all that an error says: its message, its notes, and those of the errors behind it."""
    return "\n".join(part for each in _chain(error) for part in (message_of(each), *_notes(each)))


def _notes(error: BaseException) -> list[str]:
    notes = getattr(error, "__notes__", ())
    return [note for note in notes if isinstance(note, str)] if isinstance(notes, list | tuple) else []


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
