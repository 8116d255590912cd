"""Whether a process of this host that has taken a lease still lives, asked from the operating system.

A process that holds leases keeps a small file in the folder for temporary files, with a name that nobody else can have
had, and a lock on it that goes with the process, however that dies. So neither a process id that is used again, nor a
restart, nor containers need a thought: who finds the file, and nobody's lock on it, knows that its process is dead; who
does not find it, as on another host, knows nothing, and waits for the lease to expire.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

if os.name == "posix":
    import fcntl

__all__ = ["ALIVE", "AliveMark"]

_DAY = 86_400.0  # seconds after which the file of a dead process is removed


class AliveMark:
    """The file of this process. It is there while the process holds leases (`take`, `drop`)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens: set[str] = set()
        self._fd: int | None = None
        self._name = ""

    def take(self, token: str) -> str:
        """Return the name by which others find out whether this process lives; '' where they cannot.

        It stays until every token that was passed has been dropped.
        """
        with self._lock:
            self._tokens.add(token)
            if self._fd is None and os.name == "posix":
                with suppress(OSError):
                    self._make()
            return self._name

    def drop(self, token: str) -> None:
        """Remove the file when no token is left; may be called twice."""
        with self._lock:
            self._tokens.discard(token)
            if not self._tokens and self._fd is not None:
                with suppress(OSError):
                    (_folder() / self._name).unlink()
                os.close(self._fd)
                self._fd, self._name = None, ""

    def is_dead(self, name: str) -> bool:
        """Whether the process that has taken `name` is known to be dead."""
        with self._lock:
            # All locks of a file go when the process closes any descriptor of it, so its own is not opened again.
            if os.name != "posix" or name == self._name or not _is_name(name):
                return False
            try:
                return _nobody_has(_folder() / name)
            except OSError:
                return False

    def forget(self) -> None:
        """Start anew in a forked child, which has none of its parent's locks."""
        if self._fd is not None:
            os.close(self._fd)
        self._lock = threading.Lock()
        self._tokens, self._fd, self._name = set(), None, ""

    def _make(self) -> None:
        folder = _folder()
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.lstat().st_uid != os.geteuid() or folder.is_symlink():
            return
        _sweep(folder)
        name = secrets.token_hex(16)
        fd = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._fd, self._name = fd, name


def _folder() -> Path:
    return Path(tempfile.gettempdir()) / f"n00dles-alive-{os.geteuid()}"


def _is_name(name: str) -> bool:
    return len(name) == 32 and name.isalnum()  # noqa: PLR2004 - token_hex(16)


def _nobody_has(path: Path) -> bool:
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(fd)


def _sweep(folder: Path) -> None:
    """Remove what processes have left that died long ago."""
    before = time.time() - _DAY
    for path in folder.iterdir():
        with suppress(OSError):
            if path.stat().st_mtime < before and _nobody_has(path):
                path.unlink()


ALIVE = AliveMark()
"""That of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ALIVE.forget)
