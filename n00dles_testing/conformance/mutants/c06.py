"""Stores that break C06: a kill during the recovery from a kill is survived as well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from .correct import JSONFiles, replace_file, sync_folder

__all__ = ["RemovesItsJournalFirst"]


class RemovesItsJournalFirst(JSONFiles):
    """Writes a journal, then the record in place, then removes the journal: one kill does no harm.

    A journal that is found is read, removed and applied, in this order. A second kill in between, and the record is
    half written, with nothing left to repair it.
    """

    breaks: ClassVar[str | None] = "C06"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the journal, then the record."""
        replace_file(self.journal(run_id), json.dumps(record))
        self.path(run_id).write_text(json.dumps(record))
        self.journal(run_id).unlink()
        sync_folder(self.folder)

    def read(self, run_id: str) -> Any:
        """Apply the journal, if there is one, and return the stored record."""
        journal = self.journal(run_id)
        if journal.exists():
            text = journal.read_text()
            journal.unlink()
            self.path(run_id).write_text(text)
        return super().read(run_id)

    def delete(self, run_id: str) -> None:
        """Remove both."""
        with self.lock:
            self.journal(run_id).unlink(missing_ok=True)
            super().delete(run_id)

    def journal(self, run_id: str) -> Path:
        """Return the journal of a run."""
        return self.path(run_id).with_suffix(".journal")
