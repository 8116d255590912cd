"""Stores that break C01: acknowledged saves are there after close and reopen, and in another process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

from .correct import AppendOnlyLog, JSONFiles

__all__ = ["CompactsWhatItOpened", "NamesFilesByHash"]


class CompactsWhatItOpened(AppendOnlyLog):
    """Compacts the log on close, from a snapshot taken when it was opened.

    A kill does no harm, a proper shutdown loses everything since the start.
    """

    breaks: ClassVar[str | None] = "C01"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.snapshot = dict(self.runs)

    def close(self) -> None:
        """Write the snapshot over the log."""
        super().close()
        self.path.write_text("".join(json.dumps(line) + "\n" for line in self.snapshot.items()))


class NamesFilesByHash(JSONFiles):
    """Names files by `hash(run_id)`, which Python salts anew in every process.

    All is well until the process restarts. A killed process is another process too, so C02 sees it as well.
    """

    breaks: ClassVar[str | None] = "C01"
    also_breaks: ClassVar[tuple[str, ...]] = ("C02",)

    def path(self, run_id: str) -> Path:
        """Return a file that only this process will find again."""
        return self.folder / f"{hash(run_id):x}.json"
