"""Other processes for a few milliseconds each: forks of one clean process that has imported the store's module.

A fresh interpreter takes a fifth of a second to import what a store needs; a fork takes some milliseconds. The process
that is forked (`nursery_process.py`) has one thread, no event loop and no open store: a fork carries over imported
modules and nothing else. With them it carries over the hash seed and what a module keeps since its import; where those
matter, a check asks for a fresh interpreter.
"""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import threading
from contextlib import suppress
from typing import Any

from ..channel import Channel
from ..interpreters import start_interpreter
from .processes import OtherProcess

__all__ = ["ForkedProcess", "Nursery", "NurseryGoneError"]

_MODULE = f"{__package__}.nursery_process"
_TIME_TO_START = 60.0
_TIME_TO_DIE = 10.0


class NurseryGoneError(Exception):
    """The process that is forked has ended."""


class Nursery:
    """Our side. `unfit` says why nothing can be forked, None if all is well; then use fresh interpreters."""

    def __init__(self, target: str, folder: str | None = None) -> None:
        """Start the process in `folder`, by default where we are, and have it import `target`."""
        self.unfit: str | None = None
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        if not hasattr(os, "fork") or not hasattr(socket, "send_fds"):
            self.unfit = "this system has no fork"
            return
        self._control, theirs = socket.socketpair()
        with theirs, tempfile.TemporaryFile() as printed:
            self._process = start_interpreter(
                _MODULE,
                [str(theirs.fileno())],
                keep=[theirs.fileno()],
                output=printed,
                own_session=False,
                folder=folder,
            )
        self._greet(target)

    def fork(self, *, tracing: bool = False) -> ForkedProcess:
        """Return a new process that serves as `child.py` does, or `tracer.py`. Raises `NurseryGoneError`."""
        return ForkedProcess(self, tracing=tracing)

    def close(self) -> None:
        """End the process, and every fork of it that is left."""
        if self._process is None:
            return
        self._control.close()
        try:
            self._process.wait(_TIME_TO_DIE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def hand_over(self, descriptors: list[int], *, tracing: bool) -> None:
        """Have a process forked that gets these descriptors. Raises `NurseryGoneError`."""
        try:
            with self._lock:
                socket.send_fds(self._control, [b"t" if tracing else b"f"], descriptors)
        except OSError as error:
            raise NurseryGoneError(str(error)) from error

    def _greet(self, target: str) -> None:
        channel = Channel(self._control.fileno(), self._control.fileno())
        try:
            channel.send({"target": target})
            reply: dict[str, Any] | None = channel.receive(_TIME_TO_START)
        except (OSError, TimeoutError):
            reply = None
        if reply is None or "unfit" in reply:
            self.unfit = "the process that imports it did not start" if reply is None else reply["unfit"]
            self.close()


class ForkedProcess(OtherProcess):
    """A fork of the nursery's process. Who kills and reaps it is the nursery; we ask, and are told the status."""

    def __init__(self, nursery: Nursery, *, tracing: bool = False) -> None:
        """Have it forked. Raises `NurseryGoneError`."""
        super().__init__()
        child_reads, we_write = os.pipe()
        we_read, child_writes = os.pipe()
        ours, theirs = socket.socketpair()
        self.channel = Channel(we_read, we_write)
        self._life = ours
        self._news = Channel(ours.fileno(), ours.fileno())
        self._status: int | None = None
        try:
            with theirs:
                ends = [child_reads, child_writes, self._output.fileno(), theirs.fileno()]
                nursery.hand_over(ends, tracing=tracing)
            born = self._news.receive(_TIME_TO_START)
            if born is None:
                raise NurseryGoneError("the process that is forked has ended")
        except BaseException:
            self._hang_up()
            raise
        finally:
            os.close(child_reads)
            os.close(child_writes)
        self._pid: int = born["pid"]

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._hang_up()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._pid

    def wait(self, timeout: float) -> int | None:
        """Wait for the end; return the exit status as `subprocess` does (-9: killed), or None if it is still there.

        Raises `NurseryGoneError` if the nursery has ended: the kernel has then ended this process, or somebody had.
        """
        if self._status is None:
            try:
                news = self._news.receive(timeout)
            except TimeoutError:
                return None
            if news is None:
                raise NurseryGoneError("the process that is forked has ended")
            self._status = news["status"]
        return self._status

    def kill(self) -> None:
        """Kill the process; return when it is gone."""
        if self._status is None:
            # If the nursery has ended, the kernel has ended its forks.
            with suppress(OSError, NurseryGoneError):
                self._life.shutdown(socket.SHUT_WR)
                self.wait(_TIME_TO_DIE)

    def _hang_up(self) -> None:
        self.channel.close()
        self._life.close()
        self._output.close()
