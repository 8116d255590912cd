"""What several clauses say in the same words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..history import Life
from ..typed import describe, show

__all__ = ["at", "failure", "named", "whose_fault"]


def whose_fault(life: Life, node: str) -> str:
    """Say who knew of a node that was complete and is called again: the store or nobody."""
    if not life.knows_disk:
        return (
            f"either the output of `{node}` had not been stored by then, or it is not used in life {life.number}; what "
            "the loop has stored is not known without stored="
        )
    if node in life.stored:
        return f"the store had the output of `{node}`, and the executor did not use it"
    return f"the store did not have the output of `{node}` when life {life.number} started"


def at(value: Any, other: Any = None) -> str:
    """Name the type, or show the value where the types alone do not tell them apart."""
    scalar = not isinstance(value, dict | list)
    return show(value) if scalar and (other is None or not isinstance(other, dict | list)) else describe(value)


def failure(outcome: Mapping[str, Any]) -> str:
    """Name the error of a life; of a node with the place where it was raised."""
    cause: str = outcome.get("cause", "")
    return f"{outcome['error']}: {cause or outcome['message']}"


def named(nodes: Iterable[str]) -> str:
    """Return the nodes as a text for a person."""
    return ", ".join(f"`{node}`" for node in nodes)
