"""What a process touches outside its own memory: the proof that a store which keeps nothing does not even try.

Python tells (PEP 578) when a file is opened, SQLite connected or a socket connected. What a C library does by itself is
not seen here; its files are found in the location.
"""

from __future__ import annotations

import os
import sys
from typing import Any

__all__ = ["watch_what_is_touched"]

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def watch_what_is_touched() -> list[str]:
    """Start to note files opened for writing, databases and connections; return the list that grows.

    It cannot be stopped again, so only a process of its own calls this.
    """
    touched: list[str] = []

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITING and _counts(path):
                touched.append(f"file {os.fsdecode(path)}")
        elif event == "sqlite3.connect" and str(arguments[0]) not in ("", ":memory:"):
            touched.append(f"database {arguments[0]}")
        elif event == "socket.connect":
            touched.append(f"address {arguments[1]}")

    sys.addaudithook(note)
    return touched


def _counts(path: Any) -> bool:
    if not isinstance(path, str | bytes):
        return False
    text = os.fsdecode(path)
    return not text.startswith(("/dev/", "/proc/")) and "__pycache__" not in text
