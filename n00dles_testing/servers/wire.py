"""Just enough of both protocols to make a database or empty one, over the server's Unix socket, without a driver."""

from __future__ import annotations

import socket
import struct
from pathlib import Path
from typing import BinaryIO

from .errors import ServerError

__all__ = ["ask_valkey", "tell_postgres"]

_PROTOCOL_3 = 196608
_PASSWORD_NEEDED = 3


def tell_postgres(path: Path, statements: list[str], *, database: str = "postgres", seconds: float = 30) -> None:
    """Run statements one after the other, each in a transaction of its own, as the superuser `postgres`.

    `path` is the socket's. Raises `ServerError` with the server's message, and `OSError` if it does not answer.
    """
    start = struct.pack("!i", _PROTOCOL_3) + f"user\0postgres\0database\0{database}\0\0".encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(seconds)
        connection.connect(str(path))
        connection.sendall(struct.pack("!i", len(start) + 4) + start)
        with connection.makefile("rb") as answers:
            _until_ready(answers, "connecting")
            for statement in statements:
                body = statement.encode() + b"\0"
                connection.sendall(b"Q" + struct.pack("!i", len(body) + 4) + body)
                _until_ready(answers, statement)
            connection.sendall(b"X" + struct.pack("!i", 4))


def _until_ready(answers: BinaryIO, what: str) -> None:
    """Read messages until the server waits for the next statement."""
    problem = ""
    while True:
        head = answers.read(5)
        if len(head) < 5:  # noqa: PLR2004 - a kind and a length
            raise ServerError(problem or f"PostgreSQL closed the connection while {what!r} was run")
        kind, length = head[:1], struct.unpack("!i", head[1:])[0]
        body = answers.read(length - 4)
        if kind == b"E":
            fields = {part[:1]: part[1:].decode(errors="replace") for part in body.split(b"\0") if part}
            problem = f"PostgreSQL refused {what!r}: {fields.get(b'M', '?')} ({fields.get(b'C', '?')})"
        elif kind == b"Z":
            if problem:
                raise ServerError(problem)
            return


def ask_valkey(path: Path, *commands: list[str], password: str = "", seconds: float = 30) -> list[str]:
    """Run commands on one connection; return the first line of each reply. Raises as `tell_postgres` does."""
    replies = []
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(seconds)
        connection.connect(str(path))
        with connection.makefile("rb") as answers:
            for command in [["AUTH", password], *commands] if password else commands:
                words = [word.encode() for word in command]
                connection.sendall(
                    b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
                )
                line = answers.readline().decode(errors="replace").rstrip("\r\n")
                if not line:
                    raise ServerError(f"the server closed the connection while {command[0]} was run")
                if line.startswith("-"):
                    raise ServerError(f"the server refused {command[0]}: {line[1:]}")
                if line.startswith("$") and line != "$-1":
                    line = answers.read(int(line[1:]) + 2).decode(errors="replace").removesuffix("\r\n")
                replies.append(line.removeprefix("+").removeprefix(":"))
    return replies[1:] if password else replies
