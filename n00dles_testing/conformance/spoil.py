"""Editing all that can be reached in an object, as a caller may that believes it to be its own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence
from typing import Any

__all__ = ["spoil", "spoil_run"]


def spoil_run(run: Any) -> int:
    """Edit all that a caller can reach in a run, at any depth; return how many edits can be seen in it afterwards.

    Of a context of n00dles these are its inputs and the containers in its outputs: `completed` refuses edits, and
    `order` is a copy. Of a store's own dict it is everything.
    """

    def part(name: str) -> Any:
        return run.get(name) if isinstance(run, Mapping) else getattr(run, name, None)

    return sum(spoil(lambda name=name: part(name)) for name in ("inputs", "completed", "order"))  # type: ignore[misc]


def spoil(get: Callable[[], Any]) -> int:
    """Edit in place what `get` returns, its inner containers first; return how many edits the next `get` shows.

    What refuses to be edited is left, its content is not. An edit of a copy made for the caller is none.
    """
    value = get()
    if isinstance(value, Mapping):
        edits = sum(spoil(lambda key=key: get()[key]) for key in list(value))  # type: ignore[misc]
        return edits + _spoil_mapping(get) if isinstance(value, MutableMapping) else edits
    if not isinstance(value, list | tuple | MutableSequence):
        return 0
    edits = sum(spoil(lambda at=at: get()[at]) for at in range(len(value)))  # type: ignore[misc]
    if isinstance(value, MutableSequence):
        before = len(value)
        with contextlib.suppress(Exception):
            value.append("spoiled")
        edits += len(get()) > before
    return edits


def _spoil_mapping(get: Callable[[], Any]) -> int:
    """Replace what is no container, and add a key."""
    edits = 0
    plain = [key for key, part in get().items() if not isinstance(part, Mapping | MutableSequence)]
    for key in [*plain, "spoiled"]:
        with contextlib.suppress(Exception):
            get()[key] = "spoiled"
        edits += get().get(key) == "spoiled"
    return edits
