"""Stores that break P03: after a failed sync nothing is acknowledged that only the page cache holds."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any, ClassVar

from .correct import AppendOnlyLog, JSONFiles, sync_folder

__all__ = ["BelievesThePageCache", "LeavesOutAFailedSync", "RetriesTheSync"]

_TRIES = 3


class _SyncsInItsOwnWay(JSONFiles):
    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Replace the run's file."""
        path = self.path(run_id)
        aside = path.with_suffix(".new")
        with aside.open("w") as file:
            json.dump(record, file)
            file.flush()
            self.sync(file.fileno())
        aside.replace(path)
        sync_folder(path.parent)

    def sync(self, descriptor: int) -> None:
        """Sync a file."""
        raise NotImplementedError


class RetriesTheSync(_SyncsInItsOwnWay):
    """Tries a sync that has failed again, as one does with a network.

    The second one succeeds: the kernel takes the pages that it could not write for written. PostgreSQL did so until
    2018.
    """

    breaks: ClassVar[str | None] = "P03"

    def sync(self, descriptor: int) -> None:
        """Sync it, three times if need be."""
        for left in reversed(range(_TRIES)):
            try:
                os.fsync(descriptor)
            except OSError:
                if not left:
                    raise
            else:
                return


class LeavesOutAFailedSync(_SyncsInItsOwnWay):
    """Syncs as well as it can: where that fails, as on some network file systems, it does without."""

    breaks: ClassVar[str | None] = "P03"

    def sync(self, descriptor: int) -> None:
        """Sync it, if that can be done."""
        with suppress(OSError):
            os.fsync(descriptor)


class BelievesThePageCache(AppendOnlyLog):
    """Reads its file again after an error, writes the end of a line that it finds whole, and appends to that.

    Whole is what the page cache holds. Of a long line the disk may have only the last page, which is written once more
    with the end: a hole for ever, and the next line behind it.
    """

    breaks: ClassVar[str | None] = "P03"

    def read_file(self, *, after_an_error: bool = False) -> None:
        """Read what is there, and end it."""
        if after_an_error and self.path.read_text().endswith("]"):
            with self.path.open("a") as file:
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
        super().read_file()
