"""Stores that break P01: whatever the disk holds after a power loss, the store opens on it, loads, and goes on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, ClassVar

from .correct import AppendOnlyLog, JSONFiles, sync_folder

__all__ = ["AppendsInOneGo", "MendsWithoutASync", "RenamesWithoutASync"]


class RenamesWithoutASync(JSONFiles):
    """Writes a file aside and renames it, for that is atomic, and syncs the folder only.

    The name reaches the disk, the bytes do not: after a power loss the file is empty. (ext4 saves those who replace a
    file in this way, and not those who create one.)
    """

    breaks: ClassVar[str | None] = "P01"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Replace the run's file."""
        replace_carelessly(self.path(run_id), json.dumps(record))


class AppendsInOneGo(AppendOnlyLog):
    """Appends a line with its end by one write, and takes a line that has an end for whole.

    Of a write over several pages any of them may reach the disk: the end of the line, and not its middle.
    """

    breaks: ClassVar[str | None] = "P01"

    def append(self, run_id: str, record: dict[str, Any] | None) -> None:
        """Append one line and sync it."""
        self.file.write(json.dumps([run_id, record]) + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())
        self.apply(run_id, record)


class MendsWithoutASync(AppendOnlyLog):
    """Cuts off a torn line by writing the file anew, and does not sync that: the power must not fail twice.

    If it does, the file does not load, where a part of it is missing, or nothing is left, where all of it is.
    """

    breaks: ClassVar[str | None] = "P01"
    also_breaks: ClassVar[tuple[str, ...]] = ("P02",)

    def read_file(self, *, after_an_error: bool = False) -> None:
        """Cut off a torn line before the file is read."""
        if self.path.exists() and not after_an_error:
            text = self.path.read_text()
            if text and not text.endswith("\n"):
                replace_carelessly(self.path, text[: text.rfind("\n") + 1])
        super().read_file(after_an_error=after_an_error)


def replace_carelessly(path: Path, text: str) -> None:
    """Write a file aside and put it in place of the old one: only the names are synced."""
    aside = path.with_suffix(".new")
    aside.write_text(text)
    aside.replace(path)
    sync_folder(path.parent)
