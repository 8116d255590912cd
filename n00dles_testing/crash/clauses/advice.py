"""What is no fault of the executor and worth knowing: nodes whose effect may happen twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..history import History
from .wording import named

__all__ = ["advice", "called_again"]


def advice(histories: Iterable[History]) -> list[str]:
    """Return one sentence that names, each once, the bodies that were called again after they had returned.

    A kill between a node's effect and its checkpoint has it called again, whatever the executor does. A body that has
    asked for its idempotency key knows that; one that is a pure function need not care.
    """
    histories = list(histories)
    nodes = list(dict.fromkeys(node for history in histories for node in called_again(history)))
    if not nodes:
        return []
    has_keys = any(call.key is not None for history in histories for call in history.calls)
    key = "idempotency_key()" if has_keys else "a key made from the run and the node"
    return [
        f"{named(nodes)} may run twice: a kill can fall between a node's effect and its checkpoint; give {key} along "
        "with whatever it does outside"
    ]


def called_again(history: History) -> Iterator[str]:
    """Yield the bodies that had returned without being stored, were called again, and never asked for their key."""
    asking = {entry["key"] for entry in history.entries if entry.kind == "key_read"}
    returned: set[str] = set()
    for life in history.working:
        completed = history.completed_before(life)
        for call in life.calls:
            was_in_flight = call.node in returned and call.node not in completed
            if was_in_flight and call.request is None and (call.key is None or call.key not in asking):
                yield call.node
        returned |= {call.node for call in life.calls if call.succeeded}
