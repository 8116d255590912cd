"""A correct store on a Valkey or Redis server, without a client library: one string a run, and one connection.

Written as a user would who has read the description of the protocol. It needs a server: `--server valkey`.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from typing import Any, BinaryIO, ClassVar
from urllib.parse import unquote, urlsplit

from .correct import NotStoredError, merged, new_record, record_of

__all__ = ["ValkeyRuns"]

_SECONDS = 1.0
_SWAP = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2]) return 1 end return 0"


class ValkeyRuns:
    """A run is the JSON text under its id; a save replaces the text that it has read, and is merged with that."""

    breaks: ClassVar[str | None] = None
    server: ClassVar[str | None] = "valkey"

    def __init__(self, url: str) -> None:
        self.url = urlsplit(url)
        self.lock = threading.RLock()
        self.process = os.getpid()
        self.line: tuple[socket.socket, BinaryIO] | None = None

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Read the run's text, or set it if nobody has."""
        found = self.ask("GET", _key(run_id))
        if found is None:
            self.ask("SET", _key(run_id), json.dumps(new_record(run_id, inputs)), "NX")
            found = self.ask("GET", _key(run_id))
        return json.loads(found)

    def save(self, run_id: str, context: Any) -> None:
        """Replace the run's text, merged with what is stored."""
        while True:
            stored = self.ask("GET", _key(run_id))
            if stored is None:
                raise NotStoredError(run_id)
            record = json.dumps(merged(json.loads(stored), record_of(context)))
            if self.ask("EVAL", _SWAP, "1", _key(run_id), stored, record):
                return

    def delete(self, run_id: str) -> None:
        """Remove the run's text."""
        self.ask("DEL", _key(run_id))

    def close(self) -> None:
        """Hang up."""
        with self.lock:
            line, self.line = self.line, None
            if line is not None and self.process == os.getpid():
                line[1].close()
                line[0].close()

    def ask(self, *words: str) -> Any:
        """Send a command, and return its reply; after an error, hang up: what is still to come belongs to nobody."""
        with self.lock:
            if self.process != os.getpid():
                self.line, self.process = None, os.getpid()  # the parent's
            try:
                return self.asked(*words)
            except OSError as error:
                self.after_an_error(error)
                raise

    def asked(self, *words: str) -> Any:
        """Send a command over the connection, which is made if there is none, and return its reply."""
        if self.line is None:
            made = socket.create_connection((self.url.hostname or "localhost", self.url.port or 6379), _SECONDS)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.line = made, made.makefile("rb")
            if self.url.password:
                self.asked("AUTH", unquote(self.url.password))
            self.asked("SELECT", self.url.path.strip("/") or "0")
        sent, replies = self.line
        encoded = [word.encode() for word in words]
        sent.sendall(b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%s\r\n" % (len(each), each) for each in encoded))
        return _reply(replies)

    def after_an_error(self, error: OSError) -> None:
        """Hang up."""
        self.close()


def _key(run_id: str) -> str:
    return run_id.encode().hex()


def _reply(replies: BinaryIO) -> Any:
    line = replies.readline()
    if not line.endswith(b"\r\n"):
        raise ConnectionError("the server has hung up")
    kind, said = line[:1], line[1:-2].decode()
    if kind == b"-":
        raise ConnectionError(f"the server says: {said}")
    if kind != b"$":
        return int(said) if kind == b":" else said
    if said == "-1":
        return None
    text = replies.read(int(said) + 2)
    if len(text) != int(said) + 2:
        raise ConnectionError("the server has hung up within a reply")
    return text[:-2].decode()
