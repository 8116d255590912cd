"""Stores that break P02 by a second power loss: it comes while they repair what the first has left."""

from __future__ import annotations

import json
import os
from typing import Any, ClassVar

from .correct import AppendOnlyLog, replace_file, sync_folder

__all__ = ["DropsItsJournalTooEarly"]


class DropsItsJournalTooEarly(AppendOnlyLog):
    """Repairs its file from a journal when it opens, and removes the journal before that is synced.

    The last line is in the journal as well, which is synced; the line itself is synced before the next one. So a save
    survives one power loss, which may take the line, and not another one after the opening that has written it again.
    """

    breaks: ClassVar[str | None] = "P02"

    def read_file(self, *, after_an_error: bool = False) -> None:
        """Read what is there, and what only the journal has."""
        super().read_file(after_an_error=after_an_error)
        self.journal = self.path.with_suffix(".journal")
        last = self.journal.read_text() if self.journal.exists() else ""
        if last and not self.path.read_text().endswith(last):
            self.write(last)
            self.replay(last)
            self.drop_journal()

    def append(self, run_id: str, record: dict[str, Any] | None) -> None:
        """Sync the line before, keep this one in the journal, and append it."""
        line = json.dumps([run_id, record]) + "\n"
        os.fsync(self.file.fileno())
        replace_file(self.journal, line)
        self.write(line)
        self.apply(run_id, record)

    def delete(self, run_id: str) -> None:
        """Write the file anew, without the run, once nothing of it is in the journal."""
        with self.lock:
            with self.sound():
                os.fsync(self.file.fileno())
                self.drop_journal()
            super().delete(run_id)

    def write(self, line: str) -> None:
        """Append a line. It is not synced: the journal has it."""
        self.file.write(line)
        self.file.flush()

    def drop_journal(self) -> None:
        """Remove it, for good."""
        self.journal.unlink(missing_ok=True)
        sync_folder(self.path.parent)

    def replay(self, text: str) -> None:
        """Apply every line without a hole: what a power loss has taken of the last one reads as zeros."""
        super().replay("".join(line for line in text.splitlines(keepends=True) if "\0" not in line))
