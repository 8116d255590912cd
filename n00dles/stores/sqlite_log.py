"""The write-ahead log of a SQLite file, kept longer than what is in it.

Syncing a file that has grown also writes that it has, to the journal of the file system: a commit then takes up to
twice as long as one that writes over what is there. SQLite lets the log grow by a page a commit, for its first thousand
pages, and removes it when the last process closes it. So it is made longer here in steps, by zeros. SQLite reads a log
up to the first frame that does not carry the salt of its header, or is of page 0
(https://www.sqlite.org/fileformat2.html#walformat), and writes over the zeros.
"""

from __future__ import annotations

import os
from contextlib import suppress

__all__ = ["WriteAheadLog"]

SMALLEST_STEP, LARGEST_STEP = 2**17, 2**20  # bytes
COMMIT = 2**14
"""Bytes that a commit is taken to write, and seldom does: a look at the log, too, takes time."""
LONGEST = 2**22
"""Bytes after which SQLite begins the log anew, unless somebody reads on."""


class WriteAheadLog:
    """The log of the database at `path`: make the object as soon as a connection is open, and another for the next one.

    The path may come to mean another database, whose log is written under a lock that nobody holds here. So only the
    file that was there at first is made longer, which SQLite holds open: its number is not given to another one.
    """

    def __init__(self, path: str) -> None:
        self._path = f"{os.path.realpath(path)}-wal"
        self._identity: tuple[int, int] | None = None
        with suppress(OSError):
            self._identity = _identity(os.stat(self._path))
        self._length: int | None = None
        self._commits_ahead = 0

    def begin_anew(self) -> None:
        """Take note that the log has been cut."""
        self._length, self._commits_ahead = None, 0

    def grow_ahead(self) -> None:
        """Make the log longer if it has grown by itself since the last call.

        Call it between BEGIN IMMEDIATE and the first change: then nobody else writes to the log. It is doubled, so all
        that is written in vain is as long as what is not; who saves once pays nothing. Where it cannot be done, SQLite
        lets the log grow, or says why it cannot.
        """
        if self._commits_ahead > 0:
            self._commits_ahead -= 1
            return
        if self._length is not None and self._length >= LONGEST:
            return
        with suppress(OSError):
            length = os.stat(self._path).st_size
            if self._length is not None and self._length < length:
                length += self._append(bytes(min(max(length, SMALLEST_STEP), LARGEST_STEP)))
            self._length = length

    def _append(self, zeros: bytes) -> int:
        """Return how many of them were written."""
        with open(self._path, "r+b", buffering=0) as log:
            if _identity(os.fstat(log.fileno())) != self._identity:
                return 0
            log.seek(0, os.SEEK_END)
            self._commits_ahead = len(zeros) // COMMIT
            return log.write(zeros)


def _identity(file: os.stat_result) -> tuple[int, int]:
    return file.st_dev, file.st_ino
