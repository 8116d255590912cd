"""JSON messages over a pipe, one a line, with a limit to how long one is waited for."""

from __future__ import annotations

import json
import os
import select
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

__all__ = ["MessageReader", "MessageWriter"]

_CHUNK = 65536


class MessageReader:
    """The end that messages come out of. `is_closed` says that no more can come."""

    def __init__(self, descriptor: int) -> None:
        self.is_closed = False
        self._file = os.fdopen(descriptor, "rb", buffering=0)
        self._unread = b""
        self._poll = select.poll()  # not select(), which fails for descriptors beyond 1023
        self._poll.register(descriptor, select.POLLIN)

    def fileno(self) -> int:
        """Return the descriptor, for a poll."""
        return self._file.fileno()

    def read(self, limit: float | None = None) -> dict[str, Any] | None:
        """Return the next message; None if there is none within `limit` seconds, or the other end is closed."""
        while b"\n" not in self._unread:
            if not self._poll.poll(None if limit is None else limit * 1000):
                return None
            chunk = self._file.read(_CHUNK)
            if not chunk:
                self.is_closed = True
                return None
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def close(self) -> None:
        """Let go of the descriptor."""
        self._file.close()


class MessageWriter:
    """The end that messages go into."""

    def __init__(self, descriptor: int) -> None:
        self._file = os.fdopen(descriptor, "wb")

    def write(self, message: Mapping[str, Any]) -> None:
        """Send one message. If nobody reads any more it is dropped: whoever waits for the answer learns of it."""
        with suppress(BrokenPipeError):
            self._file.write(json.dumps(message).encode() + b"\n")
            self._file.flush()

    def close(self) -> None:
        """Let go of the descriptor."""
        with suppress(BrokenPipeError):
            self._file.close()
