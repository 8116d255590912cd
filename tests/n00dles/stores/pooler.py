"""A small transaction pooler for PostgreSQL: as with PgBouncer, a transaction gets whichever server session is next.

Before it is lent, a session forgets everything that could be kept in it (`DISCARD ALL`), so a client that relies on
anything from its statement before fails here at once, and not only when the pool is busy.
"""

from __future__ import annotations

import itertools
import queue
import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = ["TransactionPooler"]

_SSL, _GSS, _CANCEL = 80877103, 80877104, 80877102


class TransactionPooler:
    """`with` it, clients find it at `port`. It uses `size` sessions by turns; `lent` says how often each was used."""

    def __init__(self, server_socket: Path, database: str, size: int = 2) -> None:
        self._sessions: queue.Queue[_Session] = queue.Queue()
        self.lent = [0] * size
        self._all = [_Session(server_socket, database, number) for number in range(size)]
        for session in self._all:
            self._sessions.put(session)
        self._clients = list[socket.socket]()

    def __enter__(self) -> TransactionPooler:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in [self._listener, *self._clients, *(session.socket for session in self._all)]:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            for _ in itertools.count():
                client, _address = self._listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._clients.append(client)
                threading.Thread(target=self._serve, args=[client], daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError, EOFError), client:
            while True:
                (length,) = struct.unpack("!I", _exactly(client, 4))
                (code,) = struct.unpack_from("!I", _exactly(client, length - 4))
                if code == _CANCEL:
                    return
                if code not in (_SSL, _GSS):
                    break
                client.sendall(b"N")
            client.sendall(self._all[0].greeting)
            while True:
                kind, message = _message(client)
                if kind == b"X":
                    return
                session = self._sessions.get()
                try:
                    session.ask("DISCARD ALL")
                    self.lent[session.number] += 1
                    _one_transaction(client, session.socket, message)
                finally:
                    self._sessions.put(session)


class _Session:
    """A session of the server, over its socket, where it trusts."""

    def __init__(self, path: Path, database: str, number: int) -> None:
        self.number = number
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        body = struct.pack("!I", 196608) + b"user\0postgres\0database\0" + database.encode() + b"\0\0"
        self.socket.sendall(struct.pack("!I", len(body) + 4) + body)
        self.greeting = self._until_ready()

    def ask(self, sql: str) -> None:
        body = sql.encode() + b"\0"
        self.socket.sendall(b"Q" + struct.pack("!I", len(body) + 4) + body)
        answer = self._until_ready()
        assert not answer.startswith(b"E"), answer

    def _until_ready(self) -> bytes:
        said = b""
        while True:
            kind, message = _message(self.socket)
            said += message
            if kind == b"Z":
                return said


def _one_transaction(client: socket.socket, server: socket.socket, message: bytes) -> None:
    """Pass messages on, from the first one of a client until the server is in no transaction any more."""
    kind = message[:1]
    while True:
        server.sendall(message)
        if kind in (b"Q", b"S"):  # a query, or the end of one with parameters
            while True:
                kind, answer = _message(server)
                client.sendall(answer)
                if kind == b"Z":
                    break
            if answer[-1:] == b"I":
                return
        kind, message = _message(client)


def _message(source: socket.socket) -> tuple[bytes, bytes]:
    head = _exactly(source, 5)
    return head[:1], head + _exactly(source, struct.unpack("!I", head[1:])[0] - 4)


def _exactly(source: socket.socket, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        piece: Any = source.recv(count - len(found))
        if not piece:
            raise EOFError
        found += piece
    return bytes(found)
