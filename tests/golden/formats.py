"""The formats in which runs were ever stored, each in a folder of its own, and how a folder is opened as a store."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from n00dles import PipelineContext, SQLiteStateStore

__all__ = ["FORMATS", "HERE", "Format", "JsonFile", "newest"]

HERE = Path(__file__).parent


class JsonFile:
    """A store of somebody else: three methods, and the text of `ctx.to_json()` by run in one file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self, run_id: str) -> PipelineContext | None:
        text = self.texts().get(run_id)
        return None if text is None else PipelineContext.from_json(text)

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> PipelineContext:
        return self.load(run_id) or PipelineContext(run_id, inputs)

    def save(self, run_id: str, ctx: PipelineContext) -> None:
        self._write({**self.texts(), run_id: ctx.to_json()})

    def delete(self, run_id: str) -> None:
        self._write({other: text for other, text in self.texts().items() if other != run_id})

    def texts(self) -> dict[str, str]:
        """Return the stored texts by run; a line of the file is a run."""
        if not self.path.exists():
            return {}
        return dict(json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines())

    def _write(self, texts: dict[str, str]) -> None:
        self.path.write_text("".join(json.dumps(item) + "\n" for item in texts.items()), encoding="utf-8")


@dataclass(frozen=True)
class Format:
    """A folder of golden files: `file` holds the runs, `expected.json` says what they are and do.

    A format that was released has the `sha256` of its file, which is never made again.
    """

    name: str
    file: str
    is_current: bool = False
    sha256: str = ""

    @property
    def folder(self) -> Path:
        return HERE / self.name

    def opened(self, folder: Path) -> Any:
        """Return the store over the file in `folder`, made if it is not there."""
        path = folder / self.file
        return JsonFile(path) if path.suffix == ".jsonl" else SQLiteStateStore(path)

    def copied(self, folder: Path) -> Any:
        """Return a store over a copy of the golden file."""
        shutil.copy(self.folder / self.file, folder)
        return self.opened(folder)


FORMATS = [
    Format("n00dles-0.3", "runs.sqlite", sha256="f0a51f15e354aebc4a11484d91ece96c2856dc163b79b6d1c95a77b8f6872752"),
    Format("record-1", "runs.jsonl", is_current=True),
    Format("sqlite-1", "runs.sqlite", is_current=True),
]
"""All of them, the oldest first; a new one is added at the end, and nothing is ever taken out."""


def newest(file: str) -> Format:
    """Return the format that this release writes into such a file."""
    return next(each for each in reversed(FORMATS) if each.file == file and each.is_current)
