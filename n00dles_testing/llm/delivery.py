"""How a reply is sent. A fault of the wire is another delivery; which reply it carries is not decided here."""

from __future__ import annotations

import socket
from collections.abc import Callable
from http.client import responses

from .shapes import Answer

__all__ = ["Delivery", "whole"]

Delivery = Callable[[socket.socket, Answer], bool]
"""Sends an answer, and says whether the connection may be used again. Raises `OSError` if the other side is gone."""


def whole(connection: socket.socket, answer: Answer) -> bool:
    """Send everything, correctly: with its length, or in chunks if it is streamed."""
    if len(answer.pieces) == 1:
        connection.sendall(_head(answer, f"Content-Length: {len(answer.pieces[0])}") + answer.pieces[0])
        return True
    connection.sendall(_head(answer, "Transfer-Encoding: chunked"))
    for piece in answer.pieces:
        connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
    connection.sendall(b"0\r\n\r\n")
    return True


def _head(answer: Answer, length: str) -> bytes:
    lines = [
        f"HTTP/1.1 {answer.status} {responses.get(answer.status, 'Unnamed')}",
        f"Content-Type: {answer.content_type}",
        length,
        *(f"{name}: {value}" for name, value in answer.headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
