"""The connections of a Redis store in one event loop, by redis-py, which may be missing until a store is made."""

from __future__ import annotations

import asyncio
from typing import Any

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from ..errors import ConfigurationError
from .redis_settings import RedisSettings

__all__ = ["Pool", "new_client"]


class Pool(ConnectionPool):
    """At most `max_connections`, made when needed; whoever finds all of them in use waits for one.

    So does redis-py's BlockingConnectionPool, which takes three times as long to lend one, by a condition, a time limit
    and notes for its metrics.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._places = asyncio.Semaphore(self.max_connections)

    async def get_connection(self, *_: Any, **__: Any) -> AbstractConnection:
        """Return a connection that is open and has nothing left to read."""
        await self._places.acquire()
        try:
            connection: AbstractConnection = self.get_available_connection()  # type: ignore[no-untyped-call]
        except BaseException:
            self._places.release()
            raise
        try:
            await self.ensure_connection(connection)
        except BaseException:
            await self.release(connection)
            raise
        return connection

    async def release(self, connection: AbstractConnection) -> None:
        """Take a connection back."""
        try:
            await super().release(connection)
        finally:
            self._places.release()


def new_client(settings: RedisSettings) -> Redis:
    """Return a client with a pool of its own. Raises `ConfigurationError` if the URL holds what redis-py refuses."""
    try:
        pool = Pool.from_url(
            settings.url,
            max_connections=settings.max_connections,
            # Each attempt has its limit; with one of its own the client makes a task of every command.
            socket_timeout=None,
            socket_connect_timeout=settings.timeout / 2,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
            **({} if settings.url.startswith("unix") else {"socket_keepalive": True}),
        )
        return Redis(connection_pool=pool)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"the URL of {settings.shown} cannot be used: {error}") from None
