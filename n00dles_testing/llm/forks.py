"""What a forked child has to tell the test it was forked from: its script and journal are copies, which end with it."""

from __future__ import annotations

import json
import os
import tempfile
from io import FileIO
from types import TracebackType
from typing import Self

__all__ = ["ForkNotes"]


class ForkNotes:
    """Texts from children that are forked in the `with` block. They go through a file that has no name."""

    _file: FileIO | None = None

    def __enter__(self) -> Self:
        self._owner = os.getpid()
        self._file = tempfile.TemporaryFile("a+b", buffering=0)
        self._read = 0
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def tell(self, note: str) -> None:
        """Tell the test, if this process is a child of it."""
        if self._file is not None and os.getpid() != self._owner:
            line = json.dumps(f"{note}\n  asked in the child process {os.getpid()}") + "\n"
            self._file.write(line.encode())  # one write to a file opened so is not mixed with another's

    def news(self) -> list[str]:
        """Return what was told since the last call of this method."""
        if self._file is None or self._file.closed:
            return []
        self._file.seek(self._read)
        told = self._file.read()
        self._read += len(told)
        return [str(json.loads(line)) for line in told.splitlines()]
