"""How an answer is sent over a socket, and how that goes wrong. Which answer, and which fault, is not decided here."""

from __future__ import annotations

import os
import socket
import struct
import time
from http.client import responses

from .faults import ConnectionReset, DropsMidStream, Fault, Hangs, LostReply, SlowDrip
from .shapes import EVENTS, Answer

__all__ = ["deliver", "in_drops", "until_the_drop"]

_DROP = 64


def deliver(connection: socket.socket, answer: Answer, fault: Fault | None = None) -> bool:
    """Send an answer, or let it go wrong. Return whether all of it was sent; if not, the connection is of no use.

    Raises `OSError` if the other side is gone.
    """
    match fault:
        case Hangs():
            _wait_for_the_end(connection)
        case ConnectionReset():
            _reset(connection)
        case DropsMidStream(after=after):
            pieces = until_the_drop(answer, after)
            connection.sendall(_head(answer) + b"".join(_framed(answer, piece) for piece in pieces))
        case SlowDrip(seconds=seconds):
            connection.sendall(_head(answer))
            for place, piece in enumerate(in_drops(answer)):
                time.sleep(seconds if place else 0)
                connection.sendall(_framed(answer, piece))
            connection.sendall(_end(answer))
            return True
        case LostReply():
            pass
        case _:
            connection.sendall(
                b"".join([_head(answer), *(_framed(answer, piece) for piece in answer.pieces), _end(answer)])
            )
            return True
    return False


def until_the_drop(answer: Answer, after: int) -> list[bytes]:
    """Return what comes of an answer whose connection ends after so many events: never all of it."""
    if _is_streamed(answer):
        return answer.pieces[: min(after, len(answer.pieces) - 1)]
    (body,) = answer.pieces
    return [body[: len(body) // 2]]


def in_drops(answer: Answer) -> list[bytes]:
    """Return the pieces of an answer that comes slowly: its events, or short stretches of its body."""
    if _is_streamed(answer):
        return answer.pieces
    (body,) = answer.pieces
    return [body[start : start + _DROP] for start in range(0, len(body), _DROP)]


def _is_streamed(answer: Answer) -> bool:
    return answer.content_type == EVENTS


def _head(answer: Answer) -> bytes:
    length = "Transfer-Encoding: chunked" if _is_streamed(answer) else f"Content-Length: {len(answer.pieces[0])}"
    lines = [
        f"HTTP/1.1 {answer.status} {responses.get(answer.status, 'Unnamed')}",
        f"Content-Type: {answer.content_type}",
        length,
        *(f"{name}: {value}" for name, value in answer.headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _framed(answer: Answer, piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece) if _is_streamed(answer) else piece


def _end(answer: Answer) -> bytes:
    return b"0\r\n\r\n" if _is_streamed(answer) else b""


def _wait_for_the_end(connection: socket.socket) -> None:
    """Wait until the client has had enough and closes the connection."""
    while connection.recv(1):
        pass


def _reset(connection: socket.socket) -> None:
    """Close with TCP RST. The descriptor itself: anything less leaves it open while there are files on it."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    os.close(connection.detach())
