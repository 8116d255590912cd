"""The file of leases beside a SQLite database: one line for each run that is being worked on, locked by its worker.

Whether the worker of a line lives is not guessed from a process id. Its process holds a lock of the operating system on
the line, which goes with the process, however that dies: so neither an id that is used again, nor a restart, nor
containers that share the file need a thought. SQLite itself relies on the same kind of locks.

Nothing here has to survive the machine. A line that nobody has locked is free, whatever it says, so the file is never
synced, and damage to it means nothing.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from ..errors import StateStoreError
from .leases import Lease
from .sqlite_connection import check_path

if os.name == "posix":
    import fcntl

__all__ = ["LeaseLines", "OthersTurnError", "WrittenLease", "is_usable"]

_LINE = 512
_HOLDER_CHARACTERS = 80
_GATE = 1 << 40
"""A byte far behind every line: who has it locked may look for a line, and change those of others."""

_SWEEP_LINES = 64


class OthersTurnError(Exception):
    """Another process is at the file at this moment; nothing was done."""


@dataclass(frozen=True, slots=True)
class WrittenLease:
    """What a line says. `expires` is a time of the monotonic clock, of which a machine has one."""

    line: int
    lease: Lease
    expires: float


class LeaseLines:
    """The file at `path`, of the SQLite database at `database`.

    Locks belong to the process, not to a descriptor, and all of them go when the process closes *any* descriptor of the
    file. So a process has one of these objects for a file. Methods other than `gate` and `leave` need the gate.
    """

    def __init__(self, path: str, database: str) -> None:
        self.path = path
        self._database = database
        self._fd: int | None = None
        self._own: set[int] = set()

    @contextmanager
    def gate(self) -> Iterator[bool]:
        """Keep other processes out for a moment; gives whether the file is another one than this process had before.

        Raises `OthersTurnError` instead of waiting. What the system says against it becomes a `StateStoreError`. The
        file is closed at the end unless a line is owned.
        """
        is_new = self._fd is None
        try:
            while True:
                if self._fd is None:
                    self._fd = self._open()
                if not _lock(self._fd, _GATE, 1):
                    raise OthersTurnError
                if _is_at(self._fd, self.path):
                    break
                # Somebody has removed it since it was opened.
                self.close()
                is_new = True
            yield is_new
        except OSError as error:
            raise StateStoreError(
                f"the leases of the SQLite store {self._database!r} cannot be kept in {self.path!r}: {error}. Check "
                "the owner and mode of this file and of its folder, and free space; then start or resume the run again."
            ) from error
        finally:
            if not self._own:
                self.close()
            elif self._fd is not None:
                fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, _GATE)

    def find(self, *run_ids: str) -> list[WrittenLease]:
        """Return what is written about runs: for each nothing or, whatever has happened, rarely more than one line."""
        text, found = self._text(), list[WrittenLease]()
        for run_id in run_ids:
            name, at, end = _name(run_id), 0, 0
            while (at := text.find(name, end)) >= 0:
                line = at // _LINE
                end = (line + 1) * _LINE
                written = _parsed(run_id, line, text[line * _LINE : end])
                if written is not None:
                    found.append(written)
        return found

    def is_held(self, line: int) -> bool:
        """Whether the process that has written the line lives, and has not given it up."""
        if line in self._own:
            return True
        if not _lock(self._descriptor, line * _LINE, _LINE):
            return True
        self._unlock(line)
        return False

    def claim(self) -> int:
        """Lock a line that says nothing, and return it."""
        text = self._text()
        length = len(text) // _LINE
        if length and length % _SWEEP_LINES == 0:
            self._sweep(length)
            text = self._text()
        blank = [line for line in range(length) if text[line * _LINE] != _BEGIN and line not in self._own]
        for line in (*blank, length):
            if _lock(self._descriptor, line * _LINE, _LINE):
                self._own.add(line)
                return line
        raise OthersTurnError

    def write(self, line: int, lease: Lease, expires: float) -> None:
        """Write the lease into a line that is owned."""
        record = {
            "run": _name(lease.run_id).decode(),
            "holder": lease.holder[:_HOLDER_CHARACTERS],
            "token": lease.token,
            "since": lease.since,
            "until": lease.expires_at,
            "expires": expires,
        }
        text = json.dumps(record).encode()
        if len(text) >= _LINE:  # a name of many characters that are long in JSON
            text = json.dumps({**record, "holder": ascii(lease.holder)[: _HOLDER_CHARACTERS // 2]}).encode()
        os.pwrite(self._descriptor, text.ljust(_LINE - 1) + b"\n", line * _LINE)

    def blank(self, line: int) -> None:
        """Let a line say nothing; its owner is told so when it next looks."""
        os.pwrite(self._descriptor, _BLANK, line * _LINE)

    def leave(self, line: int) -> None:
        """Give up a line that is owned. No gate is needed, since nobody else writes into it as long as it is locked."""
        self._own.discard(line)
        if self._fd is None:
            return
        with suppress(OSError):  # what it says is of no account once it is unlocked
            self.blank(line)
        if self._own:
            self._unlock(line)
        else:
            self.close()

    def close(self) -> None:
        """Let go of the file, and so of every line."""
        fd, self._fd = self._fd, None
        self._own.clear()
        if fd is not None:
            os.close(fd)

    def remove(self) -> None:
        """Remove the file if nobody has locked a line of it."""
        if not self._own and _lock(self._descriptor, 0, _GATE):
            os.unlink(self.path)

    @property
    def _descriptor(self) -> int:
        assert self._fd is not None  # noqa: S101 - the gate has opened it
        return self._fd

    def _text(self) -> bytes:
        return os.pread(self._descriptor, os.fstat(self._descriptor).st_size, 0)

    def _unlock(self, line: int) -> None:
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN, _LINE, line * _LINE)

    def _sweep(self, length: int) -> None:
        """Blank the lines of the dead, whose runs nobody has resumed."""
        for line in range(length):
            if not self.is_held(line):
                self.blank(line)

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CLOEXEC
        try:
            return os.open(self.path, flags)
        except FileNotFoundError:
            check_path(self._database)
        fd = os.open(self.path, flags | os.O_CREAT, 0o644)
        _share(fd, self._database)
        return fd


_BLANK = b" " * (_LINE - 1) + b"\n"
_BEGIN = ord("{")


def _lock(fd: int, start: int, length: int) -> bool:
    """Lock a range, unless another process has locked a byte of it."""
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True


def _is_at(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def _share(fd: int, database: str) -> None:
    """Let whoever may use the database use its leases, as SQLite does with the files that it makes beside it."""
    with suppress(OSError):  # there is no database yet, or it is another user's
        like = os.stat(database)
        os.fchmod(fd, like.st_mode & 0o777)
        if os.geteuid() == 0:
            os.fchown(fd, like.st_uid, like.st_gid)


def _name(run_id: str) -> bytes:
    """Return what stands for a run, whose id may be longer than a line."""
    return blake2b(run_id.encode(), digest_size=16).hexdigest().encode()


def _parsed(run_id: str, line: int, text: bytes) -> WrittenLease | None:
    try:
        record = json.loads(text)
        since, until, expires = (float(record[name]) for name in ("since", "until", "expires"))
        lease = Lease(run_id, str(record["holder"]), str(record["token"]), since, until)
    except (ValueError, KeyError, TypeError):
        return None
    return WrittenLease(line, lease, expires)


def is_usable(path: str) -> bool:
    """Whether there is such a file, and this process may change it."""
    return Path(path).is_file() and os.access(path, os.W_OK)
