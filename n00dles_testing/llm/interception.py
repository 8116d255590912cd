"""Requests of httpx and httpx2 clients, answered before they reach a connection.

respx does it for httpx, by patching the connection pools of httpcore; a subclass of its mocker does the same for
httpcore2, on which httpx2 and today's SDKs are built. So a test's own `respx_mock` works beside it. Bodies are real
streams: what goes wrong in one, goes wrong at the piece where it would over a socket, with the exception of httpcore
that httpx (or httpx2) translates to its own.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from types import ModuleType
from typing import Any, ClassVar

import anyio
import httpx
import respx
from respx.mocks import HTTPCoreMocker, Mocker

__all__ = ["Ending", "Played", "Player", "Sent", "intercepting"]


class Ending(Enum):
    """What the client meets where the answer ends."""

    WHOLE = "whole"
    TIMEOUT = "nothing more comes, until the time-out"
    RESET = "the connection is reset"
    CUT = "the connection is closed before the body is complete"
    CLOSED = "the connection is closed without an answer"


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it would go over the wire. Names of headers are in lower case; `read_timeout` is in seconds."""

    method: str
    url: str
    host: str
    path: str
    headers: dict[str, str]
    body: bytes
    read_timeout: float | None


@dataclass(frozen=True, slots=True)
class Played:
    """What the client gets: a response with `pieces` of a body, `pause` seconds between them, and how it ends.

    Without a `status` there is no response at all. `done` is told whether all of it was handed over.
    """

    status: int | None = None
    headers: Sequence[tuple[str, str]] = ()
    pieces: Sequence[bytes] = ()
    pause: float = 0.0
    ending: Ending = Ending.WHOLE
    done: Callable[[bool], None] = field(default=lambda sent: None)


Player = Callable[[Sent, bool], Played | None]
"""Answers a request, or returns None to let it through. The flag says whether others mock beside it."""


class intercepting:  # noqa: N801 - used as a function in a with statement
    """Have `player` answer all requests of httpx and httpx2 clients in the `with` block, in every thread.

    Of several such blocks the inner one answers: a test's own goes before that of its class or module.
    """

    _open: ClassVar[list[intercepting]] = []

    def __init__(self, player: Player) -> None:
        self._player = player
        self._started = ExitStack()

    def __enter__(self) -> None:
        self._open.append(self)
        self._start(HTTPCoreMocker, importlib.import_module("httpcore"))
        if importlib.util.find_spec("httpcore2") is not None:
            self._start(_httpcore2_mocker(), importlib.import_module("httpcore2"))

    def __exit__(self, *error: object) -> None:
        self._open.remove(self)
        self._started.close()

    def _start(self, mocker: type[Mocker], errors: ModuleType) -> None:
        router = respx.MockRouter(assert_all_called=False, using=mocker.name)

        def answer(request: httpx.Request) -> httpx.Response | httpx.Request | None:
            if self._open[-1] is not self:
                return None  # respx asks the next one
            others = len(mocker.routers) > len(self._open)
            played = self._player(_sent(request), others)
            if played is None:
                return None if others else request  # the request itself: respx lets it through
            return _response(request, played, errors)

        router.route().mock(side_effect=answer)
        self._started.enter_context(router)


@cache
def _httpcore2_mocker() -> type[Mocker]:
    """Return respx's mocker for httpcore2: that of pytest-httpx2 where it is installed, else one of our own."""
    if theirs := Mocker.registry.get("httpcore2"):
        return theirs
    import httpcore2

    class HTTPCore2Mocker(HTTPCoreMocker):
        name = "n00dles-httpcore2"
        # The proxies and all connections are below these two, or inherit from them.
        targets = ["httpcore2.ConnectionPool", "httpcore2.AsyncConnectionPool"]  # noqa: RUF012 - respx declares it so

        @classmethod
        def from_sync_httpx_response(cls, httpx_response: httpx.Response, target: Any, **kwargs: Any) -> Any:
            return httpcore2.Response(
                status=httpx_response.status_code,
                headers=httpx_response.headers.raw,
                content=httpx_response.stream,
                extensions=httpx_response.extensions,
            )

    return HTTPCore2Mocker


def _sent(request: httpx.Request) -> Sent:
    return Sent(
        method=request.method,
        url=str(request.url),
        host=request.url.host,
        path=request.url.path,
        headers={name.lower(): value for name, value in request.headers.items()},
        body=request.content,
        read_timeout=request.extensions.get("timeout", {}).get("read"),
    )


def _response(request: httpx.Request, played: Played, errors: ModuleType) -> httpx.Response:
    body = _Body(played, errors, request.extensions.get("timeout", {}).get("read"))
    if played.status is None:
        body.end()
    return httpx.Response(played.status or 0, headers=list(played.headers), stream=body, request=request)


class _Body(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that comes piece by piece, for either kind of client."""

    def __init__(self, played: Played, errors: ModuleType, read_timeout: float | None) -> None:
        self._played = played
        self._errors = errors
        self._times_out = read_timeout is not None and played.pause > read_timeout
        self._told = False

    def __iter__(self) -> Iterator[bytes]:
        for place, piece in enumerate(self._played.pieces):
            if place and self._played.pause:
                self._check_pause()
                time.sleep(self._played.pause)
            self._tell_of(place)
            yield piece
        self.end()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for place, piece in enumerate(self._played.pieces):
            if place and self._played.pause:
                self._check_pause()
                await anyio.sleep(self._played.pause)
            self._tell_of(place)
            yield piece
        self.end()

    def end(self) -> None:
        """End as it was scripted: with the error that a socket would have ended in."""
        ending = self._played.ending
        self._tell(sent=ending is Ending.WHOLE)
        match ending:
            case Ending.TIMEOUT:
                raise self._errors.ReadTimeout("The read operation timed out")
            case Ending.RESET:
                raise self._errors.ReadError("[Errno 104] Connection reset by peer")
            case Ending.CUT:
                raise self._errors.RemoteProtocolError(
                    "peer closed connection without sending complete message body (incomplete chunked read)"
                )
            case Ending.CLOSED:
                raise self._errors.RemoteProtocolError("Server disconnected without sending a response.")

    def close(self) -> None:
        self._tell(sent=False)

    async def aclose(self) -> None:
        self._tell(sent=False)

    def _tell_of(self, place: int) -> None:
        # A client may stop reading at the last piece, when it has seen in it that there are no more.
        if place == len(self._played.pieces) - 1 and self._played.ending is Ending.WHOLE:
            self._tell(sent=True)

    def _check_pause(self) -> None:
        if self._times_out:
            self._tell(sent=False)
            raise self._errors.ReadTimeout("The read operation timed out")

    def _tell(self, *, sent: bool) -> None:
        if not self._told:
            self._told = True
            self._played.done(sent)
