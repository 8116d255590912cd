"""Stores that break S02: what was saved comes back."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, ClassVar

from .correct import JSONFiles

__all__ = [
    "CutsTextsIntoChunks",
    "DropsWhatLooksEmpty",
    "KeepsAHundredNodes",
    "KeepsAHundredRuns",
    "KeepsAThousandNodes",
    "KeepsWhatNoneOverwrites",
    "MergesIntoWhatWasThere",
    "MovesWhatCompletesAgain",
    "OrdersByName",
    "RoundsEmbeddings",
    "RoundsToDoubles",
    "StripsTexts",
    "WritesOneBatch",
]

_PAGE = 100
_CHUNK = 65_536
_BATCH = 2_000
_VECTOR = 256


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
        """Write the record without white space at the ends of its texts; names of runs and nodes are none of them."""
        cleaned = _each(record, lambda value: value.rstrip() if isinstance(value, str) else value)
        super().write(run_id, {**cleaned, "run_id": record["run_id"], "order": record["order"]})


class RoundsToDoubles(JSONFiles):
    """Keeps numbers as a database with one kind of number does: an id beyond 2**53 is another id afterwards."""

    breaks: ClassVar[str | None] = "S02"
    also_breaks: ClassVar[tuple[str, ...]] = ("S03",)

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the record with every whole number as the nearest double."""
        super().write(run_id, _each(record, lambda value: int(float(value)) if type(value) is int else value))


class WritesOneBatch(JSONFiles):
    """Inserts the rows of a save as one batch, of 2000 at most, and acknowledges a larger save all the same."""

    breaks: ClassVar[str | None] = "S02"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the record with the first batch of what is new in it."""
        stored = self.read(run_id) or record
        late = {node for node in record["order"] if node not in stored["completed"]}
        late -= set([node for node in record["order"] if node in late][:_BATCH])
        kept = [node for node in record["order"] if node not in late]
        super().write(
            run_id, {**record, "order": kept, "completed": {node: record["completed"][node] for node in kept}}
        )


class KeepsWhatNoneOverwrites(JSONFiles):
    """`SET output = COALESCE(excluded.output, output)`: a step done again that returns None keeps the old one."""

    breaks: ClassVar[str | None] = "S02"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the record, and what was there where an output is None."""
        stored = self.read(run_id) or record
        outputs = {node: _or(output, stored["completed"].get(node)) for node, output in record["completed"].items()}
        super().write(run_id, {**record, "completed": outputs})


class MergesIntoWhatWasThere(JSONFiles):
    """`SET output = output || excluded.output`: of a dict that a step gives again, the keys that are gone stay."""

    breaks: ClassVar[str | None] = "S02"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the record, with dicts that are merged into those that were there."""
        stored = self.read(run_id) or record
        outputs = {node: _merged(stored["completed"].get(node), output) for node, output in record["completed"].items()}
        super().write(run_id, {**record, "completed": outputs})


class MovesWhatCompletesAgain(JSONFiles):
    """`INSERT OR REPLACE`, and `ORDER BY rowid`: a node that gets another output becomes the last one."""

    breaks: ClassVar[str | None] = "S02"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the record, with the nodes at its end whose output is another one than before."""
        stored = (self.read(run_id) or record)["completed"]
        moved = [node for node in record["order"] if node in stored and stored[node] != record["completed"][node]]
        super().write(run_id, {**record, "order": [*(n for n in record["order"] if n not in moved), *moved]})


class CutsTextsIntoChunks(JSONFiles):
    """Keeps long texts as rows of 64 KB, and decodes each alone: a character that lies across a border is gone."""

    breaks: ClassVar[str | None] = "S02"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the record with its long texts cut into chunks, and put together again."""
        super().write(run_id, {**record, "completed": _each(record["completed"], _chunked)})


class RoundsEmbeddings(JSONFiles):
    """Keeps a long list of floats as a vector of single precision, as databases for vectors do."""

    breaks: ClassVar[str | None] = "S02"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the record with its vectors rounded."""
        outputs = {node: _vector(output) for node, output in record["completed"].items()}
        super().write(run_id, {**record, "completed": outputs})


def _or(output: Any, before: Any) -> Any:
    return before if output is None else output


def _merged(before: Any, output: Any) -> Any:
    return {**before, **output} if isinstance(before, dict) and isinstance(output, dict) else output


def _chunked(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    raw = value.encode("utf-8", "surrogatepass")
    if len(raw) <= _CHUNK:
        return value
    return "".join(raw[at : at + _CHUNK].decode("utf-8", "ignore") for at in range(0, len(raw), _CHUNK))


def _vector(output: Any) -> Any:
    if isinstance(output, list) and len(output) >= _VECTOR and all(type(part) is float for part in output):
        return list(array("f", output))
    return output


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a copy in which every part that is no container is changed."""
    if isinstance(value, dict):
        return {key: _each(part, change) for key, part in value.items()}
    if isinstance(value, list):
        return [_each(part, change) for part in value]
    return change(value)
