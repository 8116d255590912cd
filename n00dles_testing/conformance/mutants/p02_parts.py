"""Stores that break P02: an acknowledged save is lost, because a part of it was synced and taken for all of it."""

from __future__ import annotations

import json
import os
from typing import Any, ClassVar

from .correct import AppendOnlyLog

__all__ = ["SyncsTheEndOfALine"]


class SyncsTheEndOfALine(AppendOnlyLog):
    """Writes the end of a line with RWF_DSYNC, and takes the line before it for synced by that.

    That syncs the page of the end, and no other. What is lost of a long line reads as zeros, and is left out then.
    """

    breaks: ClassVar[str | None] = "P02"

    def append(self, run_id: str, record: dict[str, Any] | None) -> None:
        """Append one line, and its end."""
        self.file.write(json.dumps([run_id, record]))
        self.file.flush()
        os.pwritev(self.file.fileno(), [b"\n"], -1, os.RWF_DSYNC)
        self.apply(run_id, record)

    def replay(self, text: str) -> None:
        """Apply every line without a hole."""
        super().replay("".join(line for line in text.splitlines(keepends=True) if "\0" not in line))
