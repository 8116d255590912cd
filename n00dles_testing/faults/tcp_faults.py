"""What can go wrong between a client and its server, seen from the wire. Each kind counts how often it has happened.

A *request* is what a client sends after the server has spoken last, up to the server's next word: right for protocols
that ask and answer (Redis, PostgreSQL, HTTP/1), handshakes included. Requests are counted over all connections, from
the moment at which the fault begins. `containing` looks only at requests with these bytes, so that the fault hits a
`COMMIT` and not a greeting; encrypted connections can be counted, and not read.

Delays and limits are in seconds and bytes. All methods but `wait` run in the proxy's thread.
"""

from __future__ import annotations

import random
import threading
from typing import Any

from .tcp_link import HELD, Ending, Link, Piece, Way

__all__ = [
    "Blackhole",
    "CutAfterBytes",
    "CutWhenIdle",
    "Delay",
    "Drip",
    "Fault",
    "LoseReply",
    "LoseRequest",
    "RefuseConnections",
    "Stall",
]


class Fault:
    """A fault between a client and its server. By itself it changes nothing; see the kinds.

    `fired` counts how often it has really happened. `times` limits that; None does not.
    """

    def __init__(self, *, times: int | None = None) -> None:
        if times is not None and times < 1:
            raise ValueError(f"times={times}: a fault that is to happen no times is no fault")
        self.times = times
        self.fired = 0
        self._changed = threading.Condition()

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if not name.startswith("_"))
        return f"{type(self).__name__}({shown})"

    @property
    def is_spent(self) -> bool:
        """Whether it has happened as often as it may."""
        return self.times is not None and self.fired >= self.times

    def wait(self, times: int = 1, timeout: float = 10.0) -> None:
        """Return once it has happened `times` times. Raises `TimeoutError` after `timeout` seconds."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.fired >= times, timeout):
                raise TimeoutError(f"{self!r} has not happened {times} times within {timeout:g} s")

    def fire(self) -> None:
        """Count that it has happened."""
        with self._changed:
            self.fired += 1
            self._changed.notify_all()

    def accepts(self) -> bool:
        """Whether a new connection is let in; if not, it is reset."""
        return True

    def reaches_server(self) -> bool:
        """Whether a new connection gets a server behind it."""
        return True

    def passing(self, link: Link, way: Way, pieces: list[Piece], now: float) -> list[Piece]:
        """Return what becomes of the pieces that have just come."""
        return pieces

    def next_look(self, link: Link) -> float | None:
        """Return when to `look` at this link, if nothing happens before."""
        return None

    def look(self, link: Link, now: float) -> None:
        """Do what is due without any bytes."""

    def ended(self, link: Link, now: float) -> None:
        """The fault is over; put this link in order."""


class Delay(Fault):
    """Every piece of data arrives `seconds` later, and up to `jitter` more; a seed makes the jitter repeatable."""

    def __init__(self, seconds: float, *, jitter: float = 0.0, seed: int = 0, way: Way | None = None) -> None:
        super().__init__()
        self.seconds, self.jitter, self.seed, self.way = seconds, jitter, seed, way
        self._random = random.Random(seed)

    def passing(self, link: Link, way: Way, pieces: list[Piece], now: float) -> list[Piece]:
        """Postpone all."""
        if self.way in (None, way):
            for piece in pieces:
                piece.due = max(piece.due, now) + self.seconds + self._random.uniform(0, self.jitter)
                self.fire()
        return pieces


class Drip(Fault):
    """Data arrives in crumbs of `size` bytes, one every `interval` seconds: a bad line, or a slow receiver."""

    def __init__(self, *, size: int = 1, interval: float = 0.001, way: Way | None = None) -> None:
        super().__init__()
        if size < 1:
            raise ValueError(f"size={size}: a crumb has at least one byte")
        self.size, self.interval, self.way = size, interval, way

    def passing(self, link: Link, way: Way, pieces: list[Piece], now: float) -> list[Piece]:
        """Cut every piece up."""
        if self.way not in (None, way):
            return pieces
        crumbs: list[Piece] = []
        due = max(now, link.notes.get((self, way), now))
        for piece in pieces:
            for start in range(0, len(piece.data), self.size):
                due = max(due, piece.due) + self.interval
                crumbs.append(Piece(piece.data[start : start + self.size], due, holder=piece.holder))
                self.fire()
            if piece.end:
                crumbs.append(Piece(b"", due, piece.end, piece.then))
        link.notes[(self, way)] = due if due != HELD else now
        return crumbs


class CutAfterBytes(Fault):
    """Each connection is cut once `count` bytes have gone `way` since the fault began: a message torn in the middle."""

    def __init__(self, count: int, *, way: Way = "to_server", how: Ending = "rst", times: int | None = 1) -> None:
        super().__init__(times=times)
        if count < 1:
            raise ValueError(f"count={count}: at least one byte goes through; RefuseConnections lets none")
        self.count, self.way, self.how = count, way, how
        self._planned = 0

    def passing(self, link: Link, way: Way, pieces: list[Piece], now: float) -> list[Piece]:
        """Let the first bytes through, and end the link behind them."""
        if way != self.way:
            return pieces
        gone = link.notes.get(self, 0)
        if gone >= self.count:
            return []  # its end is on its way
        if self.times is not None and self._planned >= self.times:
            return pieces
        let_through: list[Piece] = []
        for piece in pieces:
            room = self.count - gone
            if len(piece.data) >= room and piece.data:
                let_through.append(Piece(piece.data[:room], piece.due, self.how, self.fire, piece.holder))
                link.notes[self] = self.count
                self._planned += 1
                return let_through
            gone += len(piece.data)
            let_through.append(piece)
        link.notes[self] = gone
        return let_through


class CutWhenIdle(Fault):
    """A connection is cut when no byte has passed for `seconds`: what firewalls and poolers do to waiting connections.

    A client learns of it at its next request, unless it looks before.
    """

    def __init__(self, seconds: float, *, how: Ending = "rst", times: int | None = None) -> None:
        super().__init__(times=times)
        self.seconds, self.how = seconds, how

    def next_look(self, link: Link) -> float | None:
        """When it will have been idle for long enough."""
        return None if self.is_spent else link.last_bytes + self.seconds

    def look(self, link: Link, now: float) -> None:
        """Cut it if it is idle."""
        if not self.is_spent and now >= link.last_bytes + self.seconds:
            link.end(self.how)
            self.fire()


class RefuseConnections(Fault):
    """New connections are reset as soon as they are made; those that exist go on: a server at its limit."""

    def accepts(self) -> bool:
        """Never."""
        self.fire()
        return False


class Blackhole(Fault):
    """New connections are accepted, what is sent is swallowed, and no answer ever comes: a host that hangs.

    Such connections are reset when the fault ends.
    """

    def reaches_server(self) -> bool:
        """Never."""
        self.fire()
        return False

    def ended(self, link: Link, now: float) -> None:
        """Reset the connections that nobody answers."""
        if link.server is None:
            link.end("rst")


class Stall(Fault):
    """What is sent `way` (None: both ways) does not arrive while the fault lasts: a half-open connection, a partition.

    When it ends, all of it arrives late, as after a partition that has healed. With `then="rst"` or `"fin"` the held
    bytes are lost instead, and the connection is cut. `fired` counts the pieces of data that were held.
    """

    def __init__(self, way: Way | None = None, *, then: Ending | None = None) -> None:
        super().__init__()
        self.way, self.then = way, then

    def passing(self, link: Link, way: Way, pieces: list[Piece], now: float) -> list[Piece]:
        """Hold all."""
        if self.way in (None, way):
            for piece in pieces:
                piece.due, piece.holder = HELD, self
                if piece.data:
                    self.fire()
            link.notes[self] = True
        return pieces

    def ended(self, link: Link, now: float) -> None:
        """Deliver, or cut."""
        if link.notes.get(self) and self.then is not None:
            link.end(self.then)
        for stream in link.streams.values():
            stream.let_go(self, now)


class _RequestFault(Fault):
    """A fault at the n-th request, or at the n-th of those that contain some bytes."""

    def __init__(self, *, nth: int = 1, containing: bytes = b"", how: Ending = "rst", times: int | None = 1) -> None:
        super().__init__(times=times)
        if nth < 1:
            raise ValueError(f"nth={nth}: requests are counted from 1")
        self.nth, self.containing, self.how = nth, containing, how
        self._seen = self._hits = 0

    def _is_hit(self, link: Link, pieces: list[Piece]) -> bool:
        """Whether the request that these bytes begin or go on with is the one."""
        note: dict[str, Any] = link.notes.setdefault(self, {"tail": b"", "counted": False})
        data = b"".join(piece.data for piece in pieces)
        if not data:
            return False
        if link.turn == "to_client":
            note.update(tail=b"", counted=False)
        if note["counted"] or (self.times is not None and self._hits >= self.times):
            return False
        text = note["tail"] + data
        note["tail"] = text[-len(self.containing) :] if self.containing else b""
        if self.containing not in text:
            return False
        note["counted"] = True
        self._seen += 1
        if self._seen < self.nth:
            return False
        self._hits += 1
        return True


class LoseRequest(_RequestFault):
    """The n-th request never reaches the server, and the connection is cut: nothing has been done.

    For the client it is the same as `LoseReply`, where it has been done.
    """

    def passing(self, link: Link, way: Way, pieces: list[Piece], now: float) -> list[Piece]:
        """Cut before the request."""
        if way == "to_server" and self._is_hit(link, pieces):
            link.end(self.how)
            self.fire()
            return []
        return pieces


class LoseReply(_RequestFault):
    """The n-th request reaches the server, its answer is dropped, and the connection is cut: it *has* been done.

    It counts as happened when the answer was there to be dropped, so the server has worked on the request. The cut
    comes when the server has been silent for `settle` seconds after that.
    """

    def __init__(
        self,
        *,
        nth: int = 1,
        containing: bytes = b"",
        how: Ending = "rst",
        times: int | None = 1,
        settle: float = 0.02,
    ) -> None:
        super().__init__(nth=nth, containing=containing, how=how, times=times)
        self.settle = settle

    def passing(self, link: Link, way: Way, pieces: list[Piece], now: float) -> list[Piece]:
        """Let the request through, and none of what follows."""
        mark = (self, "waits")
        if link.notes.get(mark):
            if way == "to_server" and link.ends_at is None:
                return pieces  # the rest of the request
            if way == "to_client":
                link.ends_at = (now + self.settle, self.how, self.fire)
            return []
        if way == "to_server" and self._is_hit(link, pieces):
            link.notes[mark] = True
        return pieces

    def ended(self, link: Link, now: float) -> None:
        """Cut where an answer was dropped; one that has not come yet is let through."""
        if link.notes.pop((self, "waits"), None) and link.ends_at is not None:
            link.end(self.how)
            self.fire()
