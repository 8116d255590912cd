"""Stores that break S06: runs are apart, and no id reaches outside the store."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import ClassVar

from .correct import AppendOnlyLog, JSONFiles

__all__ = [
    "CleansFileNames",
    "CutsLongIds",
    "DeletesWhatIsLike",
    "IgnoresCase",
    "IgnoresCaseWhenItReads",
    "NormalizesIds",
    "UsesIdsAsPaths",
]

_VARCHAR = 100


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
