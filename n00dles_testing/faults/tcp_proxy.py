"""A TCP proxy that stands between a client and its server, and disturbs what passes.

    with TCPProxy("127.0.0.1", 5432) as proxy:
        store = connect(proxy.address)
        with proxy.disturbed(LoseReply(containing=b"COMMIT")):
            await store.save(...)

The store under test is neither changed nor wrapped, and may be in any process: it only gets another port. The proxy
lives in a thread of its own, so that neither an event loop nor a blocking call holds it up. A fault that did not
happen while it was wanted is an error, `VacuousFaultError`: a test that disturbs nothing shows nothing.
"""

from __future__ import annotations

import os
import selectors
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit, urlunsplit

from .tcp_faults import Fault
from .tcp_link import Ending, Link, Piece, Stream, Way, end_socket

__all__ = ["ProxyError", "TCPProxy", "VacuousFaultError"]

FaultT = TypeVar("FaultT", bound=Fault)
T = TypeVar("T")

_SECONDS_TO_OBEY = 10.0
_OPEN: weakref.WeakSet[TCPProxy] = weakref.WeakSet()


class ProxyError(RuntimeError):
    """The proxy itself has failed, so what it was used for shows nothing. Its cause is the error in its thread."""


class VacuousFaultError(AssertionError):
    """A fault was asked for and did not happen: what was seen meanwhile is no evidence.

    Look whether the client was connected through the proxy at all, and whether it sent what the fault waits for.
    """


class TCPProxy:
    """Forwards connections to `address` on to the server at `host`:`port`; use it as a context manager.

    It listens on a free port of 127.0.0.1. `connections` counts the connections that were made to it, `failed` those
    for which the server could not be reached; their clients see a reset.
    """

    def __init__(self, host: str, port: int) -> None:
        self.connections = 0
        self.failed = 0
        self._server = (host, port)
        self._faults: list[Fault] = []
        self._links: set[Link] = set()
        self._orders: list[tuple[Callable[[], Any], Future[Any]]] = []
        self._lock = threading.Lock()
        self._is_closing = False
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self.host, self.port = "127.0.0.1", 0

    def __repr__(self) -> str:
        return f"<TCPProxy {self.host}:{self.port} to {self._server[0]}:{self._server[1]}>"

    @property
    def address(self) -> tuple[str, int]:
        """Host and port for the client."""
        return self.host, self.port

    def url(self, url: str) -> str:
        """Return the URL of a server with this proxy in its place; user, password, path and query stay."""
        parts = urlsplit(url)
        if not parts.hostname or "," in parts.netloc:
            raise ValueError(
                "a URL that leads through a proxy names one host; one with a socket file or several does not"
            )
        user, at, _ = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=f"{user}{at}{self.host}:{self.port}"))

    def __enter__(self) -> Self:
        if self._thread is not None:
            raise RuntimeError(f"{self!r} is used a second time; make another")
        self._listener = socket.create_server((self.host, 0), backlog=128)
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]
        self._waking, self._woken = socket.socketpair()
        self._waking.setblocking(False)
        self._woken.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._work, name=f"tcp proxy {self.port}", daemon=True)
        self._thread.start()
        _OPEN.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _OPEN.discard(self)
        self._is_closing = True
        self._wake()
        assert self._thread is not None
        self._thread.join(_SECONDS_TO_OBEY)
        if self._thread.is_alive():
            raise ProxyError(f"the thread of {self!r} does not end")
        self._close_all()
        if self._error is not None and error is None:
            raise ProxyError(f"{self!r} has failed: {self._error!r}") from self._error

    @contextmanager
    def disturbed(self, *faults: FaultT, must_fire: bool = True) -> Iterator[FaultT]:
        """Have `faults` act meanwhile, in this order on each piece of data; yields the first.

        Raises `VacuousFaultError` at the end if one of them did not happen (`must_fire`).
        """
        if not faults:
            raise ValueError("no fault is named")
        before = [fault.fired for fault in faults]
        self._order(lambda: self._faults.extend(faults))
        try:
            yield faults[0]
        except BaseException as error:
            self._order(lambda: self._end(faults))
            for fault, count in zip(faults, before, strict=True):
                if fault.fired == count and must_fire:
                    error.add_note(f"and {fault!r} did not happen before that")
            raise
        self._order(lambda: self._end(faults))
        idle = [repr(fault) for fault, count in zip(faults, before, strict=True) if fault.fired == count]
        if idle and must_fire:
            raise VacuousFaultError(
                f"VACUOUS: {', '.join(idle)} did not happen; {self.connections} connections were made to {self!r}. "
                "Is the client connected through the proxy, and does it send what the fault waits for?"
            )

    def cut(self, how: Ending = "rst") -> int:
        """Cut all connections now, and return how many; new ones may be made. `VacuousFaultError` if there is none."""
        count = self._order(lambda: self._cut(how))
        if not count:
            raise VacuousFaultError(f"VACUOUS: there is no connection to cut at {self!r}")
        return count

    @property
    def open_links(self) -> int:
        """How many connections there are at this moment."""
        return self._order(lambda: len(self._links))

    # What follows, up to `_close_all`, runs in the proxy's thread.

    def _work(self) -> None:
        try:
            while not self._is_closing:
                self._turn()
        except BaseException as error:
            self._error = error
            self._cut("rst")
        finally:
            with self._lock:
                self._is_closing = True
                orders, self._orders = self._orders, []
            for _, answer in orders:
                answer.set_exception(ProxyError(f"{self!r} has ended"))

    def _turn(self) -> None:
        events = self._selector.select(self._pause())
        now = time.monotonic()
        for key, _ in events:
            if key.fileobj is self._listener:
                self._accept(now)
            elif key.fileobj is self._woken:
                with suppress(BlockingIOError):
                    self._woken.recv(4096)
            elif not key.data.is_ended:
                self._read(key.data, key.fileobj, now)
        with self._lock:
            orders, self._orders = self._orders, []
        for order, answer in orders:
            try:
                answer.set_result(order())
            except BaseException as error:
                answer.set_exception(error)
        # Ended ones first: their descriptors may already be those of new connections.
        for link in [link for link in self._links if link.is_ended]:
            self._forget(link)
        for link in list(self._links):
            self._look_at(link, time.monotonic())

    def _pause(self) -> float | None:
        """Return the seconds until something is due without any bytes."""
        streams = [stream for link in self._links for stream in link.streams.values()]
        due = [stream.next_due() for stream in streams if not self._is_blocked(stream)]
        due += [fault.next_look(link) for link in self._links for fault in self._faults]
        due += [link.ends_at[0] for link in self._links if link.ends_at is not None]
        times = [moment for moment in due if moment is not None]
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _is_blocked(self, stream: Stream) -> bool:
        """Whether the receiver takes nothing now, so that the selector and not the clock says when to go on."""
        key = self._selector.get_map().get(stream.sink) if stream.sink.fileno() >= 0 else None
        return key is not None and bool(key.events & selectors.EVENT_WRITE)

    def _accept(self, now: float) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:  # it has gone again
            return
        self.connections += 1
        client.setblocking(False)
        if not all(fault.accepts() for fault in self._faults if not fault.is_spent):
            end_socket(client, "rst")
            return
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server = None
        if all(fault.reaches_server() for fault in self._faults if not fault.is_spent):
            try:
                server = socket.create_connection(self._server, timeout=5.0)
            except OSError:
                self.failed += 1
                end_socket(client, "rst")
                return
            server.setblocking(False)
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._links.add(Link(self.connections, client, server, now))

    def _read(self, link: Link, source: Any, now: float) -> None:
        if link.server is None:
            self._swallow(link)
            return
        way: Way = "to_server" if source is link.client else "to_client"
        stream = link.streams[way]
        if not stream.may_read:
            return
        piece = stream.read()
        if piece is None:
            return
        piece.due = now
        if piece.data:
            link.last_bytes = now
        pieces = [piece]
        for fault in self._faults:
            pieces = fault.passing(link, way, pieces, now)
            if link.is_ended:
                return
        if piece.data:
            link.turn = way
        stream.put(pieces)

    def _swallow(self, link: Link) -> None:
        try:
            is_over = not link.client.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            is_over = True
        if is_over:
            link.end("fin")

    def _look_at(self, link: Link, now: float) -> None:
        """Pass on what is due, and see that the selector waits for what can happen next."""
        for stream in link.streams.values():
            if not link.is_ended:
                end = stream.write(now)
                if end is not None:
                    self._end_link(link, end)
        for fault in self._faults:
            if not link.is_ended:
                fault.look(link, now)
        if not link.is_ended and link.ends_at is not None and now >= link.ends_at[0]:
            _, how, then = link.ends_at
            link.end(how)
            then()
        if not link.is_ended and link.is_over:
            link.end("fin")
        if link.is_ended:
            self._forget(link)
        else:
            self._watch(link, now)

    @staticmethod
    def _end_link(link: Link, piece: Piece) -> None:
        link.end("fin" if piece.end == "fin" else "rst")
        if piece.then is not None:
            piece.then()

    def _watch(self, link: Link, now: float) -> None:
        """Register both sockets for what they can do now."""
        wanted: dict[socket.socket, int] = {link.client: 0 if link.streams else selectors.EVENT_READ}
        for stream in link.streams.values():
            wanted[stream.source] = wanted.get(stream.source, 0) | (selectors.EVENT_READ if stream.may_read else 0)
            is_full = bool(stream.queue) and stream.queue[0].due <= now
            wanted[stream.sink] = wanted.get(stream.sink, 0) | (selectors.EVENT_WRITE if is_full else 0)
        known = self._selector.get_map()
        for connection, events in wanted.items():
            key = known.get(connection)
            if key is None and events:
                self._selector.register(connection, events, link)
            elif key is not None and not events:
                self._selector.unregister(connection)
            elif key is not None and key.events != events:
                self._selector.modify(connection, events, link)

    def _forget(self, link: Link) -> None:
        self._links.discard(link)
        for key in [key for key in self._selector.get_map().values() if key.data is link]:
            self._selector.unregister(key.fileobj)

    def _cut(self, how: Ending) -> int:
        links = list(self._links)
        for link in links:
            link.end(how)
            self._forget(link)
        return len(links)

    def _end(self, faults: tuple[Fault, ...]) -> None:
        now = time.monotonic()
        for fault in faults:
            self._faults.remove(fault)
            for link in self._links:
                if not link.is_ended:
                    fault.ended(link, now)

    # From here on: the caller's thread.

    def _order(self, order: Callable[[], T]) -> T:
        """Have the proxy's thread do something, and return what came of it."""
        answer: Future[T] = Future()
        with self._lock:
            if self._is_closing or self._thread is None:
                cause = f": {self._error!r}" if self._error is not None else "; use it as a context manager"
                raise ProxyError(f"{self!r} is not running{cause}") from self._error
            self._orders.append((order, answer))
        self._wake()
        return answer.result(_SECONDS_TO_OBEY)

    def _wake(self) -> None:
        with suppress(BlockingIOError):
            self._waking.send(b".")

    def _close_all(self) -> None:
        for link in self._links:
            link.end("fin")
        self._links.clear()
        self._selector.close()
        for connection in (self._listener, self._waking, self._woken):
            connection.close()

    def _close_in_child(self) -> None:
        """A forked child must not hold connections open that the parent cuts."""
        for link in self._links:
            link.client.close()
            if link.server is not None:
                link.server.close()
        for each in (self._listener, self._waking, self._woken, self._selector):
            each.close()


def _after_fork() -> None:
    for proxy in list(_OPEN):
        proxy._close_in_child()
    _OPEN.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
