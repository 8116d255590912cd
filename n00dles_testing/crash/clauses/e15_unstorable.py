"""E15: an output that cannot be stored fails that node, naming node and path, before anything downstream runs.

A set, bytes, NaN or an object of one's own is no JSON. Found at save time, three nodes later or on resume, it is a
riddle; turned into text on the way, it is another value, and nobody is told. So the node that returned it fails, at
once, with an error that says which node and where in its output.

Seen in: langflow-ai/langflow #11905 (one NaN makes the store refuse the whole record); langchain-ai/langgraph #9021
(what cannot be revived becomes None without a warning); pydantic/pydantic-ai PR #6893 (a step is retried for ever).

Fix: the author of a pipeline returns what JSON can hold (a sorted list for a set, text for bytes, None for NaN). The
author of an executor converts an output strictly, right after the node has returned and before anything else, and never
with `default=str`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..case import Case
from ..history import Call, Life, same
from ..typed import canonical, describe, show
from .documentation import documented
from .endings import ended_by_itself

__all__ = ["CLAUSE"]

_TYPE = "$type"
_UNSTORABLE = ("set", "frozenset", "bytes", "bytearray", "complex", "float", "object")
"""Types that JSON has nothing for; a float is only kept by its type if it is no number, or infinite."""


def fails_at_once(case: Case) -> Iterator[tuple[str, str]]:
    """Yield outputs that cannot be stored, and were changed on the way, acted upon, or refused without a name."""
    told: set[str] = set()
    for life in case.history.working:
        for call in life.calls:
            found = _unstorable(call.output) if call.succeeded and call.node not in told else None
            if found is None:
                continue
            for fault in (*_accepted(case, life, call), *_refused(case, life, call, found)):
                told.add(call.node)
                yield fault


def unstorable_outputs(case: Case) -> int:
    """Count outputs that JSON cannot hold."""
    return sum(
        call.succeeded and _unstorable(call.output) is not None for life in case.history.working for call in life.calls
    )


def _unstorable(value: Any, path: tuple[str, ...] = ()) -> tuple[tuple[str, ...], Any] | None:
    """Return where a typed form has a part that JSON cannot hold, and that part."""
    if isinstance(value, dict):
        if value.get(_TYPE) in _UNSTORABLE:
            return path, value
        parts = [(key, part) for key, part in value.items() if key != _TYPE] if _TYPE not in value else []
    elif isinstance(value, list):
        parts = [("", part) for part in value]
    else:
        return None
    return next((found for key, part in parts if (found := _unstorable(part, (*path, key))) is not None), None)


def _is_acknowledged(life: Life, node: str) -> bool:
    return any(save.acknowledged and node in save.nodes for save in life.saves)


def _accepted(case: Case, life: Life, call: Call) -> Iterator[tuple[str, str]]:
    """It was stored: an executor that can keep it exactly may do so; what is read then has to be what was returned."""
    if not _is_acknowledged(life, call.node):
        return
    for reader, value in _read(case, call.node):
        if _is_changed(call.output, value) and not _is_from_elsewhere(case, value):
            yield (
                f"`{call.node}` returned {describe(_leaf(call))}, and {reader} {show(value)}",
                "what cannot be stored exactly is refused, and never approximated",
            )
            return


def _read(case: Case, node: str) -> Iterator[tuple[str, Any]]:
    """Yield what those that come after a node have got, and what the run returned if none does."""
    is_last = True
    for call in case.history.calls:
        if node in case.baseline.needs.get(call.node, ()):
            is_last = False
            for value in (call.arguments or {}).values():
                yield f"`{call.node}` got", value
    outcome = case.history.outcome
    if is_last and outcome is not None and outcome["ok"]:
        yield "the run returned", outcome["output"]


def _is_from_elsewhere(case: Case, value: Any) -> bool:
    return any(call.succeeded and same(call.output, value) for call in case.history.calls)


def _refused(case: Case, life: Life, call: Call, found: tuple[tuple[str, ...], Any]) -> Iterator[tuple[str, str]]:
    if _is_acknowledged(life, call.node) or not ended_by_itself(life) or life.outcomes[0].get("blame") == "store":
        return
    later = [c.node for c in life.calls if c.began > (call.ended or 0)]
    for node in later:
        if call.node in case.baseline.needs.get(node, ()):
            yield (
                f"`{node}` was started in life {life.number}, though the output of `{call.node}` cannot be stored",
                "an output is checked before anything acts on it",
            )
            return
    if life.outcomes[0]["ok"] or call.node in later:
        return
    outcome = life.outcomes[0]
    text = f"{outcome['message']} {outcome.get('cause', '')}"
    keys = [key for key in found[0] if key]
    missing = call.node if call.node not in text else next((key for key in keys[-1:] if key not in text), None)
    if missing is not None and _is_alone(life, call):
        yield (
            f"the output of `{call.node}` cannot be stored, and the error does not name `{missing}`: "
            f"{outcome['error']}: {outcome['message']}",
            "the error says which node returned it, and where in its output it is",
        )


def _is_alone(life: Life, call: Call) -> bool:
    """Whether nothing else than this output can have ended the life: no other node has failed, or was refused."""
    others = [other for other in life.calls if other.node != call.node]
    return all(other.succeeded and _unstorable(other.output) is None for other in others)


def _leaf(call: Call) -> Any:
    found = _unstorable(call.output)
    return call.output if found is None else found[1]


def _is_changed(original: Any, seen: Any) -> bool:
    """Whether `seen` is `original` with something else in the place of what cannot be stored."""
    if isinstance(original, dict) and original.get(_TYPE) in _UNSTORABLE:
        return _is_substitute(original, seen)
    if canonical(original) == canonical(seen):
        return False
    if isinstance(original, list) and isinstance(seen, list) and len(original) == len(seen):
        pairs = list(zip(original, seen, strict=True))
    elif isinstance(original, dict) and isinstance(seen, dict) and original.keys() == seen.keys():
        pairs = [(original[key], seen[key]) for key in original]
    else:
        return False
    return all(
        _is_changed(one, other) or (_is_lost(one) and other is None) or canonical(one) == canonical(other)
        for one, other in pairs
    )


def _is_lost(part: Any) -> bool:
    return isinstance(part, dict) and part.get(_TYPE) in _UNSTORABLE


def _is_substitute(leaf: dict[str, Any], seen: Any) -> bool:
    """Whether `seen` is what careless code makes of it: its text, or its items as a list."""
    if isinstance(seen, list):
        return sorted(map(canonical, seen)) == sorted(map(canonical, leaf.get("items", [None])))
    if not isinstance(seen, str):
        return False
    if "items" in leaf:
        items = leaf["items"]
        return seen.startswith(("{", "set(", "frozenset(")) and all(str(item) in seen for item in items)
    return seen.strip('"').lower() == str(leaf.get("repr", "")).lower()


CLAUSE = documented(
    __doc__,
    check=fails_at_once,
    occasions=unstorable_outputs,
    without="no node returned what JSON cannot hold",
    undisturbed=True,
    sharpens=("E01", "E04", "E05"),
)
