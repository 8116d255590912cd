"""What a hostile value is, and when another one is the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

__all__ = ["Expected", "Hostile", "same"]

Expected = Literal["kept", "refused"]


@dataclass(frozen=True, slots=True)
class Hostile:
    """One value, and what must become of it.

    `expected` is "kept": it comes back equal in value and JSON type, or a store that has no room for it refuses it,
    naming the node; or "refused": JSON cannot hold it exactly, so it is refused by an error that names its path.
    `make` returns a fresh value each time. `path` is where in it the refusal must point (empty: to the value itself);
    `harm` is what it becomes where nobody looks.
    """

    title: str
    expected: Expected
    make: Callable[[], Any]
    harm: str
    path: str = ""

    def value(self) -> Any:
        """Return the value, which shares nothing with one that was returned before."""
        return self.make()

    def __str__(self) -> str:
        return self.title


def same(wanted: Any, came: Any) -> bool:
    """Return whether two values are equal in value and type, all the way down.

    1, 1.0 and True are three, 0.0 and -0.0 are two, NaN is itself, and of two times an hour apart by their fold neither
    is the other. The order of keys is not looked at: an object of JSON has none.
    """
    if type(wanted) is not type(came):
        return False
    if isinstance(wanted, dict):
        keys = {(type(key), key) for key in wanted}, {(type(key), key) for key in came}
        return keys[0] == keys[1] and all(same(wanted[key], came[key]) for key in wanted)
    if isinstance(wanted, list | tuple):
        return len(wanted) == len(came) and all(same(a, b) for a, b in zip(wanted, came, strict=True))
    if isinstance(wanted, BaseModel):
        parts = [(dict(vars(each)), each.model_extra, each.__pydantic_private__) for each in (wanted, came)]
        return same(*parts)
    if isinstance(wanted, set | frozenset):
        return bool(wanted == came)
    # repr tells 0.0 from -0.0 and one fold from the other; == tells secrets apart, whose repr is all asterisks.
    return repr(wanted) == repr(came) and (wanted == came or wanted != wanted)  # noqa: PLR0124 - NaN
