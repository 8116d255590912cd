"""Lines of JSON between two processes, on descriptors of their own: a store may print whatever it likes."""

from __future__ import annotations

import contextlib
import json
import os
import select
import threading
import time
from typing import Any

__all__ = ["Channel"]

_CHUNK = 65536


class Channel:
    """One end of a conversation. Messages are JSON objects, one a line.

    One that is `only_here` is for the process that has made it: a fork of that process, in which our own code goes on
    since a store has forked inside a call, ends as soon as it would send or receive.
    """

    def __init__(self, read_fd: int, write_fd: int, *, only_here: bool = False) -> None:
        self._owner = os.getpid() if only_here else None
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._buffer = b""
        self._sending = threading.RLock()
        for fd in (read_fd, write_fd):
            os.set_inheritable(fd, False)  # else what a store starts would keep the conversation open
        self._poll = select.poll()  # not select(), which fails for descriptors beyond 1023
        self._poll.register(read_fd, select.POLLIN)

    def fileno(self) -> int:
        """Return the descriptor that is read from, for a poll."""
        return self._read_fd

    def send(self, message: dict[str, Any]) -> None:
        """Send one message, from any thread. Raises `BrokenPipeError` if the other end is gone."""
        self._expect_owner()
        data = json.dumps(message).encode() + b"\n"
        with self._sending:
            while data:
                data = data[os.write(self._write_fd, data) :]

    def receive(self, timeout: float | None = None) -> dict[str, Any] | None:
        """Wait for one message, at most `timeout` seconds; None when the other end is gone.

        Raises `TimeoutError` if nothing came in time.
        """
        self._expect_owner()
        deadline = None if timeout is None else time.monotonic() + timeout
        while b"\n" not in self._buffer:
            left = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
            if not self._poll.poll(left):
                raise TimeoutError(f"no message within {timeout} s")
            chunk = os.read(self._read_fd, _CHUNK)
            if not chunk:
                return None
            self._buffer += chunk
        line, self._buffer = self._buffer.split(b"\n", 1)
        message: dict[str, Any] = json.loads(line)
        return message

    @property
    def is_of_another(self) -> bool:
        """Whether it is for another process alone, of which this one is a fork."""
        return self._owner is not None and self._owner != os.getpid()

    def _expect_owner(self) -> None:
        if self.is_of_another:
            os._exit(0)

    def close(self) -> None:
        """Close both descriptors; may be called twice."""
        for fd in (self._read_fd, self._write_fd):
            with contextlib.suppress(OSError):
                os.close(fd)
        self._read_fd = self._write_fd = -1
