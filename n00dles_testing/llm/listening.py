"""Requests of httpx and httpx2 clients that go to the real API, and what comes back: heard, and not changed."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import httpx

from .interception import Sent

__all__ = ["Listener", "listening"]

Listener = Callable[[Sent], Callable[[int, str], None] | None]
"""Is told of a request; returns who is to be told of the response (status and body), or None if that is nobody."""


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell `listener` of every request of httpx and httpx2 clients in the `with` block, in every thread."""
    with ExitStack() as patches:
        for name in ("httpcore", "httpcore2"):
            if importlib.util.find_spec(name) is not None:
                core = importlib.import_module(name)
                for pool, method, patched in (
                    (core.ConnectionPool, "handle_request", _heard),
                    (core.AsyncConnectionPool, "handle_async_request", _heard_async),
                ):
                    original = getattr(pool, method)
                    patches.enter_context(mock.patch.object(pool, method, patched(original, listener)))
        yield


def _heard(original: Any, listener: Listener) -> Any:
    def handle_request(self: Any, request: Any) -> Any:
        body = b"".join(request.stream)
        request.stream = _Bytes(body)
        told = listener(_sent(request, body))
        response = original(self, request)
        if told is not None:
            response.stream = _Copied(response, told)
        return response

    return handle_request


def _heard_async(original: Any, listener: Listener) -> Any:
    async def handle_async_request(self: Any, request: Any) -> Any:
        body = b"".join([part async for part in request.stream])
        request.stream = _Bytes(body)
        told = listener(_sent(request, body))
        response = await original(self, request)
        if told is not None:
            response.stream = _Copied(response, told)
        return response

    return handle_async_request


def _sent(request: Any, body: bytes) -> Sent:
    host = request.url.host.decode("ascii")
    path = request.url.target.decode("ascii")
    return Sent(
        method=request.method.decode("ascii"),
        url=f"{request.url.scheme.decode('ascii')}://{host}{path}",
        host=host,
        path=path.partition("?")[0],
        headers={name.decode("latin-1").lower(): value.decode("latin-1") for name, value in request.headers},
        body=body,
        read_timeout=request.extensions.get("timeout", {}).get("read"),
    )


class _Bytes:
    """A request's body that has been read, for either kind of client."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        yield self._body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body


class _Copied:
    """A response's body, which is passed on piece by piece, and told when it has ended."""

    def __init__(self, response: Any, told: Callable[[int, str], None]) -> None:
        self._stream = response.stream
        self._status = response.status
        self._headers = response.headers
        self._told: Callable[[int, str], None] | None = told
        self._pieces: list[bytes] = []

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._stream:
            self._pieces.append(piece)
            yield piece
        self._tell()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            self._pieces.append(piece)
            yield piece
        self._tell()

    def close(self) -> None:
        self._stream.close()
        self._tell()

    async def aclose(self) -> None:
        await self._stream.aclose()
        self._tell()

    def _tell(self) -> None:
        told, self._told = self._told, None
        if told is not None:
            # A response of httpx undoes the compression that its client has asked for.
            told(self._status, httpx.Response(200, headers=self._headers, content=b"".join(self._pieces)).text)
