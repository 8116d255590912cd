"""Stores that break S02: what was saved comes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from .correct import JSONFiles

__all__ = [
    "DropsWhatLooksEmpty",
    "KeepsAHundredNodes",
    "KeepsAHundredRuns",
    "KeepsAThousandNodes",
    "OrdersByName",
    "RoundsToDoubles",
    "StripsTexts",
]

_PAGE = 100


class DropsWhatLooksEmpty(JSONFiles):
    """Keeps `output if output`: None, "", [], {} and 0 are lost, and their nodes run and are paid for again.

    The kind of HomericIntelligence/Scylla PR #368: a completed node that "is done" does not know.
    """

    breaks: ClassVar[str | None] = "S02"

    def kept(self, context: Any) -> dict[str, Any]:
        """Keep only nodes with something in them."""
        record = super().kept(context)
        record["completed"] = {node: output for node, output in record["completed"].items() if output}
        record["order"] = [node for node in record["order"] if node in record["completed"]]
        return record


class KeepsAHundredNodes(JSONFiles):
    """Reads the nodes of a run as a page of a hundred, and never asks for the next page."""

    breaks: ClassVar[str | None] = "S02"
    page: ClassVar[int] = _PAGE

    def read(self, run_id: str) -> Any:
        """Return the first page."""
        record = super().read(run_id)
        if record is not None:
            record["order"] = record["order"][: self.page]
            record["completed"] = {node: record["completed"][node] for node in record["order"]}
        return record


class KeepsAThousandNodes(KeepsAHundredNodes):
    """Likewise a page of a thousand, which is the most that PostgREST gives at once unless it is told otherwise."""

    page: ClassVar[int] = 10 * _PAGE


class KeepsAHundredRuns(JSONFiles):
    """Has a limit, as a cache has: the run that was saved longest ago makes room for a new one."""

    breaks: ClassVar[str | None] = "S02"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the record, and remove what is over the limit."""
        super().write(run_id, record)
        runs = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        for path in runs[:-_PAGE]:
            path.unlink()


class OrdersByName(JSONFiles):
    """`SELECT … ORDER BY node`: the next node gets the output of the wrong "previous" one.

    The kind of dbos-inc/dbos-transact-py #688: recovered in another order than recorded.
    """

    breaks: ClassVar[str | None] = "S02"

    def read(self, run_id: str) -> Any:
        """Return the nodes in the order of the alphabet."""
        record = super().read(run_id)
        if record is not None:
            record["order"].sort()
        return record


class StripsTexts(JSONFiles):
    """Cleans every text that it stores: a code block loses its last newline, a prompt its indentation."""

    breaks: ClassVar[str | None] = "S02"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the record without white space at the ends of its texts; the id of the run is none of them."""
        cleaned = _each(record, lambda value: value.rstrip() if isinstance(value, str) else value)
        super().write(run_id, {**cleaned, "run_id": record["run_id"]})


class RoundsToDoubles(JSONFiles):
    """Keeps numbers as a database with one kind of number does: an id beyond 2**53 is another id afterwards."""

    breaks: ClassVar[str | None] = "S02"
    also_breaks: ClassVar[tuple[str, ...]] = ("S03",)

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the record with every whole number as the nearest double."""
        super().write(run_id, _each(record, lambda value: int(float(value)) if type(value) is int else value))


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a copy in which every part that is no container is changed."""
    if isinstance(value, dict):
        return {key: _each(part, change) for key, part in value.items()}
    if isinstance(value, list):
        return [_each(part, change) for part in value]
    return change(value)
