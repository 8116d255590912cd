"""The call ledger: what really happened, kept outside the process that is killed.

One file a scenario, opened with O_APPEND, one JSON line an entry, each line a single `os.write`: what was written
before a SIGKILL is there after it, in the order in which it happened, over all lives. A line cut short by the kill is
normal.

Kinds of entries:

- `life_start` (with the point of this life, and whether it is lived in the process of the one before), `disk` (what
  the store holds as the life starts), `outcome` (how the run ended);
- `create_start`, `create_end` (`load_or_create` was asked, and gave a record);
- `call_start`, `call_end` (a node's body or its provider was called, and returned or raised);
- `key_read` (a body has asked for its idempotency key);
- `llm_request` (the request, byte for byte), `llm_reply`;
- `save_start`, `save_end` (a save was handed to the store, and was acknowledged or refused);
- `event` (what the executor said; the judge believes the others where they disagree);
- `at_point` (the process is alive at its point, and is about to die, or to be disturbed);
- `left` (right after the `outcome` of a life that was disturbed and not killed: what was still running or saving, and
  whether the disturbance got through); a call or save that begins later stands behind it;
- `awaits` (how often the run's own task gave way, in undisturbed lives).
"""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

__all__ = ["Entry", "Ledger", "LedgerWriter", "MemoryLedger", "read_ledger"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One line. `at` is monotonic seconds, comparable within one machine; the rest depends on `kind`."""

    kind: str
    life: int
    pid: int
    at: float
    data: dict[str, Any]

    def __getitem__(self, key: str) -> Any:
        return self.data[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Return a field of this kind of entry, or `default`."""
        return self.data.get(key, default)


class Ledger(Protocol):
    """What the entries of one life are written to."""

    life: int

    def write(self, kind: str, **data: Any) -> None:
        """Append one entry; `data` must be JSON (see `typed.encode`)."""

    def stop(self) -> None:
        """Write nothing from now on: a dead process does not write."""

    def close(self) -> None:
        """Let go of whatever is held. May be called twice."""


class LedgerWriter:
    """Appends the entries of one life. Safe to use from several threads: the kernel orders appends.

    After `close`, and after `stop` (a simulated death), nothing is written any more.
    """

    def __init__(self, path: Path | str, life: int) -> None:
        self.life = life
        self._pid = os.getpid()
        self._stopped = False
        self._lock = threading.Lock()
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if _ends_in_mid_line(path):
            os.write(self._file, b"\n")

    def write(self, kind: str, **data: Any) -> None:
        """Append one entry; `data` must be JSON (see `typed.encode`)."""
        entry = {"kind": kind, "life": self.life, "pid": self._pid, "at": time.monotonic(), "data": data}
        line = json.dumps(entry, separators=(",", ":")).encode() + b"\n"
        with self._lock:  # against `close`: the number of a closed file may soon be another file's
            while line and not self._stopped:
                line = line[os.write(self._file, line) :]

    def stop(self) -> None:
        """Write nothing from now on: a dead process does not write."""
        self._stopped = True

    def close(self) -> None:
        """Let go of the file. May be called twice."""
        with self._lock:
            self._stopped = True
            if self._file >= 0:
                os.close(self._file)
                self._file = -1


class MemoryLedger:
    """Keeps the entries of one life in `entries`, which all lives of a scenario share: for lives in this process."""

    def __init__(self, entries: list[Entry], life: int) -> None:
        self.life = life
        self._entries = entries
        self._pid = os.getpid()
        self._stopped = False

    def write(self, kind: str, **data: Any) -> None:
        """Append one entry. What `data` holds is kept as it is, so the caller must not change it any more."""
        if not self._stopped:
            self._entries.append(Entry(kind, self.life, self._pid, time.monotonic(), data))

    def stop(self) -> None:
        """Write nothing from now on: a dead process does not write."""
        self._stopped = True

    close = stop


def read_ledger(path: Path | str) -> list[Entry]:
    """Return all whole entries, in the order in which they happened; a file that is not there has none."""
    try:
        lines = Path(path).read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    return [entry for line in lines if (entry := _parse(line)) is not None]


def _parse(line: bytes) -> Entry | None:
    try:
        return Entry(**json.loads(line))
    except (ValueError, TypeError):
        return None  # torn by the kill


def _ends_in_mid_line(path: Path | str) -> bool:
    with open(path, "rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"
