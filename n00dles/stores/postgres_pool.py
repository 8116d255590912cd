"""A few connections of one event loop, lent for one statement at a time.

psycopg_pool is not used: it makes connections in background tasks, which hide why the server refused one, and whose
pauses may be longer than a caller's time.
"""

from __future__ import annotations

import asyncio
import math
import os
import select
import socket
from contextlib import suppress
from typing import Any

import psycopg

from .postgres_target import PostgresTarget

__all__ = ["Connection", "Pool", "cut"]

Connection = psycopg.AsyncConnection[Any]


class Pool:
    """At most `pool_size` connections, made when needed. Belongs to the event loop and the process that made it."""

    def __init__(self, target: PostgresTarget) -> None:
        self._target = target
        self._slots = asyncio.Semaphore(target.pool_size)
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._pid = os.getpid()

    async def take(self, deadline: float) -> Connection:
        """Return a connection that looks alive, at most by `deadline` (of the loop's clock).

        Raises `TimeoutError`, or what psycopg says against a new connection.
        """
        try:
            if self._slots.locked():
                async with asyncio.timeout_at(deadline):
                    await self._slots.acquire()
            else:
                await self._slots.acquire()  # at once
        except TimeoutError:
            raise TimeoutError(
                f"all {self._target.pool_size} connections of this store were in use; raise pool_size"
            ) from None
        try:
            while self._idle:
                connection = self._idle.pop()
                if _looks_alive(connection):
                    return connection
                self._discard(connection)
            return await self._connect(deadline)
        except BaseException:
            self._slots.release()
            raise

    def give_back(self, connection: Connection) -> None:
        """Take a connection back, or close it if something is still going on in it."""
        if connection in self._all and connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            self._idle.append(connection)
        else:
            self._discard(connection)
        self._slots.release()

    def close(self) -> None:
        """Close all connections; one that is in use ends with an error. In a forked child, they are left alone."""
        self._idle.clear()
        if self._pid != os.getpid():
            # To close them would end the parent's sessions.
            _inherited.append(self._all)
            return
        while self._all:
            connection = self._all.pop()  # which warns if it ends before it is closed
            connection.pgconn.finish()

    async def _connect(self, deadline: float) -> Connection:
        left = deadline - asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(deadline):
                connection: Connection = await psycopg.AsyncConnection.connect(
                    self._target.conninfo,
                    autocommit=True,
                    prepare_threshold=None,  # a transaction pooler keeps none
                    connect_timeout=max(1, math.ceil(left)),
                )
        except TimeoutError:
            raise TimeoutError("no connection was made in time") from None
        self._all.add(connection)
        return connection

    def _discard(self, connection: Connection) -> None:
        self._all.discard(connection)
        connection.pgconn.finish()


_inherited: list[set[Connection]] = []  # connections of a parent, never to be closed here


def _looks_alive(connection: Connection) -> bool:
    """Whether nothing has come over an idle connection: it would be the news of its end."""
    if connection.closed or not hasattr(select, "poll"):  # Windows has none; a broken one then costs a second try
        return not connection.closed
    try:
        poll = select.poll()
        poll.register(connection.pgconn.socket, select.POLLIN)
        return not poll.poll(0)
    except (OSError, psycopg.Error, ValueError):
        return False


def cut(connection: Connection) -> None:
    """Break a connection, so that whoever waits for its reply gets an error now."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.pgconn.socket)) as twin:
        twin.shutdown(socket.SHUT_RDWR)
