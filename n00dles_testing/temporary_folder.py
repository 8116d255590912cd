"""A temporary folder that is gone after the process that has made it, also if that is killed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["TemporaryFolder", "is_guard"]

# Whoever holds the other end of its standard input lives, or a fork of it does: they may write to the folder.
_GUARD = 'trap "" HUP INT QUIT TERM; read -r _; rm -rf -- "$1"'


def is_guard(pid: int) -> bool:
    """Whether a process guards such a folder: it ends by itself, after the one that has made the folder."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return os.fsencode(_GUARD) in words


class TemporaryFolder:
    """A new folder whose name begins with `prefix`, in `beside` or where temporary files go. Raises `OSError`.

    It is removed by `remove`, or at the end of a `with` block; if this process ends before, however it does, a small
    process of its own removes it, as soon as no fork of this one is left. (Not on Windows.)
    """

    def __init__(self, prefix: str, beside: Path | None = None) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=beside)).absolute()
        self._guard: subprocess.Popen[bytes] | None = None
        if os.name == "posix":
            with suppress(OSError):  # without a shell, or without room for a process, it is a folder as any other
                self._guard = subprocess.Popen(
                    ["/bin/sh", "-c", _GUARD, "sh", str(self.path)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    start_new_session=True,
                )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the folder, and all that is in it."""
        try:
            shutil.rmtree(self.path, ignore_errors=True)
        except BaseException:
            shutil.rmtree(self.path, ignore_errors=True)  # Ctrl-C came in the midst of it
            raise
        finally:
            self._dismiss_guard()

    def _dismiss_guard(self) -> None:
        guard, self._guard = self._guard, None
        if guard is None or guard.stdin is None:
            return
        with suppress(OSError):
            guard.stdin.write(b"\n")
        with suppress(OSError):
            guard.stdin.close()
        guard.wait()
