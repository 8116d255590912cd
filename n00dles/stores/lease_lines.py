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
from collections.abc import Callable
from contextlib import suppress
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

_FIRST_LINES, _SWEEP_LINES = 8, 64
_PIECE = 1 << 16  # bytes; few files are longer


class OthersTurnError(Exception):
    """Another process is at the file at this moment; nothing was done."""


@dataclass(frozen=True, slots=True)
class WrittenLease:
    """What a line says. `expires` is a time of the monotonic clock, of which a machine has one."""

    line: int
    lease: Lease
    expires: float


class LeaseLines:
    """The file at `path`, of the SQLite database at `database`. `with` it, other processes are kept out for a moment.

    Entering raises `OthersTurnError` instead of waiting, and calls `is_new` if this is another file than the one in
    which this process owns lines. What the system says against it becomes a `StateStoreError`. The file is open as long
    as this process owns a line.

    Locks belong to the process, not to a descriptor, and all of them go when the process closes *any* descriptor of the
    file. So a process has one of these objects for a file.
    """

    def __init__(self, path: str, database: str, is_new: Callable[[], None]) -> None:
        self.path = path
        self._database = database
        self._is_new = is_new
        self._fd: int | None = None
        self._own: set[int] = set()
        self._text: bytes | None = None
        self._last = 0

    def __enter__(self) -> None:
        try:
            self._text = None
            if self._enter():
                self._is_new()
        except BaseException as error:
            self._leave_gate()
            self._explain(error)
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._leave_gate()
        self._explain(error)

    def find(self, *run_ids: str) -> list[WrittenLease]:
        """Return what is written about runs, for each the line of its holder and those of earlier ones, if any."""
        text, found = self._read(), list[WrittenLease]()
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
        """Lock a line that nobody has locked, and return it."""
        if len(self._read()) > _PIECE and not self._own and _lock(self._descriptor, 0, _GATE):
            # Many runs were held at once; now none is.
            os.ftruncate(self._descriptor, 0)
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, _GATE, 0)
            self._text = None
        length = len(self._read()) // _LINE
        taken = self._take_first([min(self._last, length), *range(min(length, _FIRST_LINES))])
        if taken is None:
            if length and length % _SWEEP_LINES == 0:
                self._sweep(length)
            text = self._read()
            taken = self._take_first([*(at for at in range(length) if text[at * _LINE] != _BEGIN), length])
        if taken is None:
            raise OthersTurnError
        return taken

    def lock_again(self, line: int) -> None:
        """Lock a line that is owned, should somebody in this process have opened and closed the file."""
        _lock(self._descriptor, line * _LINE, _LINE)

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
        self._text = None

    def blank(self, line: int) -> None:
        """Let a line say nothing; its owner is told so when it next looks."""
        os.pwrite(self._descriptor, _BLANK, line * _LINE)
        self._text = None

    def leave(self, line: int) -> None:
        """Give up a line that is owned; what it says is then of no account. This needs no `with`."""
        self._own.discard(line)
        if not self._own:
            self.close()
        elif self._fd is not None:
            self._unlock(line)

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
        assert self._fd is not None  # noqa: S101 - entering has opened it
        return self._fd

    def _read(self) -> bytes:
        if self._text is None:
            text = os.pread(self._descriptor, _PIECE, 0)
            if len(text) == _PIECE:
                text += os.pread(self._descriptor, os.fstat(self._descriptor).st_size, _PIECE)
            self._text = text
        return self._text

    def _take_first(self, lines: list[int]) -> int | None:
        """Lock the first of these lines that nobody has locked, and return it."""
        for line in lines:
            if line not in self._own and _lock(self._descriptor, line * _LINE, _LINE):
                self._own.add(line)
                self._last = line
                return line
        return None

    def _unlock(self, line: int) -> None:
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN, _LINE, line * _LINE)

    def _sweep(self, length: int) -> None:
        """Blank the lines that nobody has locked."""
        for line in range(length):
            if not self.is_held(line):
                self.blank(line)

    def _enter(self) -> bool:
        """Open the file if need be, and lock the gate; return whether it is a new file."""
        is_new = False
        while True:
            if self._fd is None:
                self._fd = self._open()
            if not _lock(self._fd, _GATE, 1):
                raise OthersTurnError
            if _is_at(self._fd, self.path):
                return is_new
            # Somebody has removed it since it was opened.
            is_new = bool(self._own)
            self.close()

    def _leave_gate(self) -> None:
        if not self._own:
            self.close()
        elif self._fd is not None:
            fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, _GATE)

    def _explain(self, error: BaseException | None) -> None:
        if isinstance(error, OSError):
            raise StateStoreError(
                f"the leases of the SQLite store {self._database!r} cannot be kept in {self.path!r}: {error}. Check "
                "the owner and mode of this file and of its folder, and free space; then start or resume the run again."
            ) from error

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
