"""A correct store that keeps large outputs in files of their own, for the mutants that do it wrong."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from .correct import JSONFiles, replace_file, sync_folder

__all__ = ["LARGE", "OutputsAside"]

LARGE = 16_000
"""In bytes: from here on an output has a file."""


class OutputsAside(JSONFiles):
    """Each large output of a run is in a file named by the run and the output; the record names it."""

    def aside(self, run_id: str, node: str, text: str) -> Path:
        """Return the file of an output."""
        return self.folder / f"{self.path(run_id).stem}-{hashlib.sha256(f'{node} {text}'.encode()).hexdigest()}.out"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the files that are new, then the record, and remove the files that it no longer names."""
        texts = {node: json.dumps(output) for node, output in record["completed"].items()}
        aside = {node: self.aside(run_id, node, text) for node, text in texts.items() if len(text) > LARGE}
        for node, path in aside.items():
            if not path.exists():
                replace_file(path, texts[node])
        outputs = {node: None if node in aside else output for node, output in record["completed"].items()}
        names = {node: path.name for node, path in aside.items()}
        super().write(run_id, {**record, "completed": outputs, "aside": names})
        self.tidy(run_id, set(names.values()))

    def parsed(self, run_id: str, path: Path) -> Any:
        """Return the record with the outputs from their files."""
        record = super().parsed(run_id, path)
        for node, name in record.pop("aside", {}).items():
            record["completed"][node] = json.loads((self.folder / name).read_text())
        return record

    def delete(self, run_id: str) -> None:
        """Remove the record, and the run's files."""
        with self.lock:
            super().delete(run_id)
            self.tidy(run_id, set())

    def tidy(self, run_id: str, named: set[str]) -> None:
        """Remove the run's files that no record names."""
        for path in list(self.folder.glob(f"{self.path(run_id).stem}-*")):
            if path.name not in named:
                path.unlink()
        sync_folder(self.folder)
