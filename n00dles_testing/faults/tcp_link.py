"""One connection through the proxy: two streams of bytes, each in order, each piece with the time at which it may go.

Nothing here decides on a fault; a fault turns the pieces that have just been read into other pieces, or ends the link.
"""

from __future__ import annotations

import socket
import struct
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Ending", "Link", "Piece", "Stream", "Way", "end_socket"]

Way = Literal["to_server", "to_client"]

Ending = Literal["rst", "fin"]
"""How a connection ends: `rst` is abrupt (ECONNRESET, what a crash or a firewall does), `fin` is an orderly close."""

HELD = float("inf")
"""The time of a piece that goes only when its fault lets go of it."""

_QUEUE_LIMIT = 256 * 1024  # bytes; with more waiting, the sender is made to wait as well
_READ_SIZE = 64 * 1024
_NO_LINGER = struct.pack("ii", 1, 0)


@dataclass
class Piece:
    """Bytes on their way, and from when on (`time.monotonic()`) they may go.

    `end` stands behind the bytes: `eof` closes this direction, `rst` and `fin` the whole link. `then` is called when
    the link was ended so. `holder` is the fault that holds the piece back.
    """

    data: bytes
    due: float = 0.0
    end: Literal["", "eof", "rst", "fin"] = ""
    then: Callable[[], None] | None = None
    holder: object = None


@dataclass
class Stream:
    """One direction of a link. `is_lost` means that its bytes lead nowhere any more."""

    way: Way
    source: socket.socket
    sink: socket.socket
    queue: deque[Piece] = field(default_factory=deque)
    waiting: int = 0
    passed: int = 0
    has_ended: bool = False
    is_lost: bool = False

    @property
    def may_read(self) -> bool:
        """Whether there is more to expect, and room for it."""
        return not self.has_ended and self.waiting < _QUEUE_LIMIT

    @property
    def is_over(self) -> bool:
        """Whether all of it has been passed on."""
        return self.has_ended and not self.queue

    def read(self) -> Piece | None:
        """Return what has come; None if nothing has. A reset is passed on behind what came before it."""
        try:
            data = self.source.recv(_READ_SIZE)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            self.has_ended = True
            return Piece(b"", end="rst")
        if data:
            return Piece(data)
        self.has_ended = True
        return Piece(b"", end="eof")

    def put(self, pieces: list[Piece]) -> None:
        """Queue `pieces`. None overtakes another, so each waits for those before it."""
        if self.is_lost:
            return
        for piece in pieces:
            self.queue.append(piece)
            self.waiting += len(piece.data)

    def next_due(self) -> float | None:
        """Return when the first piece may go; None if there is none, or if it is held."""
        return self.queue[0].due if self.queue and self.queue[0].due != HELD else None

    def write(self, now: float) -> Piece | None:
        """Pass on what is due and what the receiver takes. Returns a piece that ends the link, if it is its turn."""
        while self.queue and self.queue[0].due <= now:
            piece = self.queue[0]
            if piece.data:
                try:
                    sent = self.sink.send(piece.data)
                except (BlockingIOError, InterruptedError):
                    return None
                except OSError:  # the receiver is gone; what it sent before is still to be read
                    self.lose()
                    return None
                self.passed += sent
                self.waiting -= sent
                piece.data = piece.data[sent:]
                if piece.data:
                    return None
            self.queue.popleft()
            if piece.end == "eof":
                with suppress(OSError):
                    self.sink.shutdown(socket.SHUT_WR)
            elif piece.end:
                return piece
        return None

    def lose(self) -> None:
        """Forget what waits, and all that follows."""
        self.is_lost = True
        self.queue.clear()
        self.waiting = 0

    def let_go(self, holder: object, now: float) -> None:
        """Send what `holder` has held back."""
        for piece in self.queue:
            if piece.holder is holder:
                piece.due, piece.holder = now, None


class Link:
    """A client's connection and the one to the server that answers it; `server` is None if nobody is behind it.

    `notes` are what each fault remembers of this link. `turn` says who has spoken last. `ends_at` is a planned end:
    when, how, and what is called then.
    """

    def __init__(self, number: int, client: socket.socket, server: socket.socket | None, now: float) -> None:
        self.number = number
        self.client = client
        self.server = server
        self.streams: dict[Way, Stream] = {}
        if server is not None:
            self.streams["to_server"] = Stream("to_server", client, server)
            self.streams["to_client"] = Stream("to_client", server, client)
        self.turn: Way = "to_client"
        self.notes: dict[object, Any] = {}
        self.last_bytes = now
        self.ends_at: tuple[float, Ending, Callable[[], None]] | None = None
        self.is_ended = False

    @property
    def is_over(self) -> bool:
        """Whether both directions have ended and were passed on."""
        return bool(self.streams) and all(stream.is_over for stream in self.streams.values())

    def end(self, how: Ending) -> None:
        """End both connections. Bytes that the receivers' systems have taken over still arrive."""
        if self.is_ended:
            return
        self.is_ended = True
        end_socket(self.client, how)
        if self.server is not None:
            end_socket(self.server, how)


def end_socket(connection: socket.socket, how: Ending) -> None:
    """Close `connection`, with a reset or in order."""
    with suppress(OSError):
        if how == "rst":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        else:
            # The shutdown comes first: closing with unread bytes would send a reset instead.
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(_READ_SIZE):
                pass
    connection.close()
