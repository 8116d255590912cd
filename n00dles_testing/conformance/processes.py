"""The suite's other processes: what all have in common, and fresh interpreters. Forks are in `nursery.py`."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from typing import IO, Any, Self

from n00dles.errors import ConfigurationError

from ..channel import Channel
from ..interpreters import start_talking
from ..parent import end_descendants
from ..servers.keeper import is_keeper
from ..temporary_folder import is_guard

__all__ = ["HelperProcess", "OtherProcess", "describe_exit"]

_TRACEBACK_WAIT = 0.5
_TIME_TO_CLEAR_AWAY = 10.0
"""Ending a server and removing its folder, which has a thousand files of PostgreSQL's, takes a fraction of it."""
_OUTPUT_TAIL = 4000


class OtherProcess(ABC):
    """A process that talks over a channel; use as a context manager, which ends it.

    What it (or the store in it) prints is kept apart and can be read with `output`.
    """

    channel: Channel

    def __init__(self) -> None:
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.kill()
        except BaseException:
            self.kill()  # Ctrl-C came in the midst of it
            raise
        finally:
            self.channel.close()
            self._output.close()

    @property
    @abstractmethod
    def pid(self) -> int:
        """The process id."""

    @abstractmethod
    def wait(self, timeout: float) -> int | None:
        """Wait for the end; return the exit status as `subprocess` does (-9: killed), or None if it is still there."""

    @abstractmethod
    def kill(self) -> None:
        """Kill the process; return when it is gone."""

    def request(self, message: dict[str, Any], timeout: float | None = None) -> dict[str, Any] | None:
        """Send a message and wait for the reply; None if the process has ended instead."""
        with contextlib.suppress(BrokenPipeError):
            self.channel.send(message)
        return self.channel.receive(timeout)

    def output(self) -> str:
        """Return the end of what was printed so far, to stdout and stderr."""
        size = self._size()
        return self._read(max(0, size - _OUTPUT_TAIL)).decode(errors="replace")

    def _size(self) -> int:
        return os.fstat(self._output.fileno()).st_size

    def _read(self, start: int) -> bytes:
        return os.pread(self._output.fileno(), _OUTPUT_TAIL, start)


class HelperProcess(OtherProcess):
    """A fresh interpreter that runs one module of this package.

    On leaving it is killed, with everything that it started, if it has not ended by itself.
    """

    def __init__(self, module: str, *, own_group: bool = False, folder: str | None = None) -> None:
        """Start `module` in `folder`, by default where we are.

        With `own_group`, `kill` ends it together with its children, and theirs.
        """
        if os.name != "posix":
            raise ConfigurationError("checking a store needs POSIX: descriptors are handed to child processes.")
        super().__init__()
        self._own_group = own_group
        try:
            self._process, self.channel = start_talking(
                module,
                environment={"PYTHONUNBUFFERED": "1"},
                output=self._output,
                own_session=own_group,
                folder=folder,
            )
        except BaseException:
            self._output.close()
            raise

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def wait(self, timeout: float) -> int | None:
        """Wait for the end; return the exit status as `subprocess` does (-9: killed), or None if it is still there."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def where_it_hangs(self) -> tuple[str, ...]:
        """Ask a process that answers no more where it is; return the lines outside this package, innermost first."""
        before = self._size()
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGUSR1)
        deadline = time.monotonic() + _TRACEBACK_WAIT
        while time.monotonic() < deadline and b'File "' not in self._read(before):
            time.sleep(0.02)
        time.sleep(0.02)
        lines = self._read(before).decode(errors="replace").splitlines()
        return tuple(line.strip() for line in lines if line.startswith('  File "') and not _is_ours(line))

    def kill(self) -> None:
        """Kill the process, and its group if it has one of its own, with all descendants; return when it is gone.

        A throw-away server that it has started is ended by its keeper, which then removes what that has left, and its
        temporary folders are removed by their guards.
        """
        left = list[int]()
        if self._process.poll() is None or self._own_group:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if self._own_group:
                    if self._process.poll() is None:
                        self._process.send_signal(signal.SIGSTOP)  # it adopts what is killed, and starts no other
                        left = end_descendants(self.pid, spared=_clears_away)
                    os.killpg(self.pid, signal.SIGKILL)
                else:
                    self._process.kill()
        self._process.wait()
        deadline = time.monotonic() + _TIME_TO_CLEAR_AWAY
        while any(map(_clears_away, left)) and time.monotonic() < deadline:
            time.sleep(0.005)


def _clears_away(pid: int) -> bool:
    return is_keeper(pid) or is_guard(pid)


def describe_exit(status: int | None) -> str:
    """Say in words how a process ended: `was killed by SIGKILL`, `ended with exit status 3`."""
    if status is None:
        return "did not end"
    if status < 0:
        try:
            return f"was killed by {signal.Signals(-status).name}"
        except ValueError:
            return f"was killed by signal {-status}"
    return f"ended with exit status {status}"


def _is_ours(line: str) -> bool:
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    standard_library = os.path.dirname(os.path.abspath(os.__file__))
    in_site_packages = os.path.join(standard_library, "site-packages")
    return package in line or (standard_library in line and in_site_packages not in line) or "<frozen" in line
