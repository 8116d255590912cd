"""Stores that break S11: large outputs come back equal, or are refused naming size and limit."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from .correct import JSONFiles

__all__ = ["CutsLongTexts", "RefusesWithoutASize", "RemovesBeforeItFits"]

_MOST = 1024 * 1024
_DOCUMENT = 16 * 1024 * 1024


class CutsLongTexts(JSONFiles):
    """Keeps the first million characters of a text, as logs do with a tool's result: the rest is gone, and nobody told.

    The next node works on the beginning of a document and does not know it.
    """

    breaks: ClassVar[str | None] = "S11"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the record with its long texts cut."""
        outputs = record["completed"].items()
        cut = {node: _cut(output) for node, output in outputs}
        super().write(run_id, {**record, "completed": cut})


class RefusesWithoutASize(JSONFiles):
    """Has a limit, as databases do for a document, and raises what the driver raises: a size, but of what, and allowed?

    The kind of aaronsu11/langgraph-checkpoint-dynamodb #3.
    """

    breaks: ClassVar[str | None] = "S11"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Raise for a run that is too large."""
        if _size(record) > _DOCUMENT:
            raise ValueError("ValidationException: item size has exceeded the maximum allowed size")
        super().write(run_id, record)


class RemovesBeforeItFits(JSONFiles):
    """Says properly what is too large, after it has removed the record that was there: the whole run is lost."""

    breaks: ClassVar[str | None] = "S11"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write if it fits; what does not has no record any more."""
        size = _size(record)
        if size > _DOCUMENT:
            self.path(run_id).unlink(missing_ok=True)
            raise ValueError(f"run {run_id!r} has {size} bytes, and {_DOCUMENT} are allowed")
        super().write(run_id, record)


def _cut(output: Any) -> Any:
    return output[:_MOST] if isinstance(output, str) else output


def _size(record: dict[str, Any]) -> int:
    return len(json.dumps(record))
