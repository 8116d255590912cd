"""One statement and its one value, by libpq and the event loop alone: for the save that nearly every save is.

A cursor of psycopg takes a fifth of the time of such a save: it looks up adapters, and keeps what may be asked later.
All other statements go through one. `psycopg.pq` is psycopg's documented layer over libpq.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import psycopg
from psycopg.pq import ExecStatus

from .postgres_pool import Connection

__all__ = ["ask"]

_BINARY = 1
_SECONDS_TO_CANCEL = 5.0


async def ask(connection: Connection, query: bytes, values: list[bytes], types: list[int]) -> bytes | None:
    """Return the value that `query` gives, binary; None if it failed, and so has changed nothing.

    `values` are binary, of the types with these ids. A cancelled call asks the server to give up, and waits for its
    end, as psycopg does. Raises `psycopg.OperationalError` if the connection breaks.
    """
    connection.pgconn.send_query_params(query, values, types, [_BINARY] * len(values), _BINARY)
    try:
        return await _answer(connection)
    except asyncio.CancelledError:
        with suppress(psycopg.Error):
            await connection.cancel_safe(timeout=_SECONDS_TO_CANCEL)
            await _answer(connection)
        raise


async def _answer(connection: Connection) -> bytes | None:
    pgconn = connection.pgconn
    while pgconn.flush():
        await _ready(pgconn.socket, writing=True)
        pgconn.consume_input()  # else both sides might wait for the other to read
    found: bytes | None = None
    while True:
        while pgconn.is_busy():
            await _ready(pgconn.socket)
            pgconn.consume_input()
        result = pgconn.get_result()
        if result is None:
            return found
        if result.status == ExecStatus.TUPLES_OK and result.ntuples == 1:
            found = result.get_value(0, 0)


async def _ready(fd: int, *, writing: bool = False) -> None:
    """Wait until a socket can be read, or written as well: the server may send before it has read everything."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()

    def wake() -> None:
        if not future.done():
            future.set_result(None)

    loop.add_reader(fd, wake)
    if writing:
        loop.add_writer(fd, wake)
    try:
        await future
    finally:
        loop.remove_reader(fd)
        if writing:
            loop.remove_writer(fd)
