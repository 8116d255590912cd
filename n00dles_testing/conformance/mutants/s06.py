"""Stores that break S06: runs are apart, and no id reaches outside the store."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from .correct import AppendOnlyLog, JSONFiles, replace_file

__all__ = [
    "CleansFileNames",
    "CutsLongIds",
    "CutsLongNames",
    "DeletesWhatIsLike",
    "IgnoresCase",
    "IgnoresCaseWhenItReads",
    "JoinsIdAndName",
    "NamesFilesLikeNodes",
    "NormalizesIds",
    "NormalizesNames",
    "UsesIdsAsPaths",
]

_VARCHAR = 100
_NAME = 255


class UsesIdsAsPaths(JSONFiles):
    """The id is the name of the file, slashes and dots included: `../x` leaves the folder (Q00/ouroboros #397)."""

    breaks: ClassVar[str | None] = "S06"

    def path(self, run_id: str) -> Path:
        """Return the file that the id names, and make the folders that it names."""
        path = self.folder / f"{run_id}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


class CleansFileNames(JSONFiles):
    """Replaces what a file name may not have by `_`: `a/b` and `a_b` are one run (Pyomo/mpi-sppy PR #777)."""

    breaks: ClassVar[str | None] = "S06"

    def path(self, run_id: str) -> Path:
        """Return a file with a clean name."""
        return self.folder / f"{re.sub(r'[^A-Za-z0-9.-]', '_', run_id)}.json"


class IgnoresCase(JSONFiles):
    """A column with a collation that ignores case: `Run` and `run` are one (agentscope-ai/agentscope-java #3217)."""

    breaks: ClassVar[str | None] = "S06"

    def path(self, run_id: str) -> Path:
        """Return the file of all ids that differ by case."""
        return super().path(run_id.upper())


class NormalizesIds(JSONFiles):
    """Brings ids to one Unicode form, as some file systems do with names, and finds another run."""

    breaks: ClassVar[str | None] = "S06"

    def path(self, run_id: str) -> Path:
        """Return the file of all ids with one normal form."""
        return super().path(unicodedata.normalize("NFC", run_id))


class CutsLongIds(JSONFiles):
    """A `VARCHAR` of a database that cuts what is too long, instead of refusing it."""

    breaks: ClassVar[str | None] = "S06"

    def path(self, run_id: str) -> Path:
        """Return the file of all ids that begin alike."""
        return super().path(run_id[:_VARCHAR])


class DeletesWhatIsLike(JSONFiles):
    """`DELETE … WHERE run_id LIKE ?`: the underscore of an id is a wildcard (langchain-ai/langgraph #8300)."""

    breaks: ClassVar[str | None] = "S06"

    def delete(self, run_id: str) -> None:
        """Remove every run whose id is like this one."""
        parts = {"%": ".*", "_": "."}
        pattern = re.compile("".join(parts.get(sign, re.escape(sign)) for sign in run_id), re.DOTALL)
        for path in list(self.folder.glob("*.json")):
            stored = bytes.fromhex(path.stem).decode()
            if pattern.fullmatch(stored):
                super().delete(stored)


class IgnoresCaseWhenItReads(AppendOnlyLog):
    """Ids are apart as long as it is open; when it reads its file, `Run` and `run` have one place in its index."""

    breaks: ClassVar[str | None] = "S06"

    def replay(self, text: str) -> None:
        """Apply every line, and keep the last one of all ids that differ by case."""
        super().replay(text)
        index = {run_id.upper(): (run_id, record) for run_id, record in self.runs.items()}
        self.runs = dict(index.values())


class NormalizesNames(JSONFiles):
    """Brings the names of nodes to one Unicode form, and drops the spaces around them: two nodes become one."""

    breaks: ClassVar[str | None] = "S06"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the record under the clean names."""
        super().write(run_id, _renamed(record, lambda node: unicodedata.normalize("NFC", node).strip() or node))


class CutsLongNames(JSONFiles):
    """A `VARCHAR(255)` for the names of nodes that cuts what is too long: of two that begin alike one is lost."""

    breaks: ClassVar[str | None] = "S06"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the record under the names as far as there is room."""
        super().write(run_id, _renamed(record, lambda node: node[:_NAME]))


class NamesFilesLikeNodes(JSONFiles):
    """Writes a copy of each output into a file with the name of the node: `../x` leaves the folder."""

    breaks: ClassVar[str | None] = "S06"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the record, and the copies of the outputs that can be written."""
        super().write(run_id, record)
        for node, output in record["completed"].items():
            if node.startswith("../") and "/" not in node[3:]:
                (self.folder / node).write_text(json.dumps(output))


class JoinsIdAndName(JSONFiles):
    """Keeps each output under `id:node`, as keys of Redis are made: node `b:c` of run `a` is node `c` of run `a:b`."""

    breaks: ClassVar[str | None] = "S06"

    def read(self, run_id: str) -> Any:
        """Return the record with what is kept under the keys of its nodes."""
        record = super().read(run_id)
        if record is not None:
            kept = self.outputs()
            record["completed"] = {
                node: kept.get(f"{run_id}:{node}", record["completed"][node]) for node in record["order"]
            }
        return record

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the record, and those of its outputs that have a key with more than one `:`."""
        new = {f"{run_id}:{node}": output for node, output in record["completed"].items()}
        new = {key: output for key, output in new.items() if key.count(":") > 1}
        super().write(run_id, record)
        if new:
            replace_file(self.folder / "outputs", json.dumps({**self.outputs(), **new}))

    def outputs(self) -> dict[str, Any]:
        """Return the outputs by their keys."""
        path = self.folder / "outputs"
        return json.loads(path.read_text()) if path.exists() else {}


def _renamed(record: dict[str, Any], rename: Callable[[str], str]) -> dict[str, Any]:
    outputs = {rename(node): output for node, output in record["completed"].items()}
    return {**record, "completed": outputs, "order": list(outputs)}
