"""Calls to one PostgreSQL database: from any event loop, within a time, again after a broken connection.

A connection is held for one call, never between two, and no call leaves a transaction open: every one is a statement
that commits by itself, so it works behind a transaction pooler as well.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

import psycopg

from .postgres_errors import is_transient, store_error
from .postgres_pool import Connection, Pool, cut
from .postgres_schema import is_made, prepare
from .postgres_target import PostgresTarget

__all__ = ["PostgresSession"]

T = TypeVar("T")
Work = Callable[[Connection], Awaitable[T]]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5  # seconds


class PostgresSession:
    """Runs calls on the database at `target`; each event loop has a pool of its own."""

    def __init__(self, target: PostgresTarget) -> None:
        self._target = target
        # Not weak: the connections of a loop that is gone have to be closed.
        self._pools: dict[asyncio.AbstractEventLoop, Pool] = {}
        self._pid = os.getpid()
        self._is_prepared = False

    async def is_made(self) -> bool:
        """Whether the schema holds the tables of a store; unlike a `call`, makes none."""
        return await self._tried(lambda c: is_made(c, self._target), None, prepared=False)

    async def call(self, work: Work[T], run_id: str | None, *, again: bool = True) -> T:
        """Return what `work` returns, which is called once more when the connection breaks, until the time is over.

        `work` must bear that its first call may have been done. With `again=False` that is an error instead. When the
        caller is cancelled, psycopg asks the server to give the statement up and waits for its end, so it is done or
        not done, never late, and its reply is not taken for that of the next one. Raises `StateStoreError`.
        """
        return await self._tried(work, run_id, again=again)

    def close(self) -> None:
        """Close the connections of all event loops; the next call opens one again."""
        while self._pools:
            _, pool = self._pools.popitem()
            pool.close()

    async def _tried(self, work: Work[T], run_id: str | None, *, again: bool = True, prepared: bool = True) -> T:
        loop = asyncio.get_running_loop()
        started, pause = loop.time(), _FIRST_PAUSE
        deadline = started + self._target.timeout
        while True:
            try:
                return await self._attempt(work, deadline, prepared)
            except (psycopg.Error, TimeoutError) as error:
                if not again or not is_transient(error) or loop.time() + pause >= deadline:
                    raise store_error(error, self._target, run_id, loop.time() - started) from error
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _attempt(self, work: Work[T], deadline: float, prepared: bool) -> T:
        pool = self._pool()
        connection = await pool.take(deadline)
        try:
            if prepared and not self._is_prepared:
                await _by(deadline, prepare(connection, self._target), connection)
                self._is_prepared = True
            return await _by(deadline, work(connection), connection)
        finally:
            pool.give_back(connection)

    def _pool(self) -> Pool:
        if self._pid != os.getpid():
            self.close()
            self._pid = os.getpid()
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            for other in [other for other in list(self._pools) if other.is_closed()]:
                self._pools.pop(other).close()
            pool = self._pools[loop] = Pool(self._target)
        return pool


async def _by(deadline: float, work: Awaitable[T], connection: Connection) -> T:
    """Return what `work` returns; at `deadline` its connection is cut, so that it ends."""
    timer = asyncio.get_running_loop().call_at(deadline, cut, connection)
    try:
        return await work
    finally:
        timer.cancel()
