"""What stands behind the fixtures `postgres_server` and `valkey_server`: one server of each kind for many tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from .errors import ServerError
from .postgres import PostgresServer, why_not_postgres
from .valkey import ValkeyServer, why_not_valkey

__all__ = ["SharedServers"]

_AnyServer = TypeVar("_AnyServer", PostgresServer, ValkeyServer)


class SharedServers:
    """Servers that are started when they are first needed, and handed to each test empty and running."""

    def __init__(self) -> None:
        self._postgres = PostgresServer()
        self._valkey = ValkeyServer()

    def postgres(self) -> PostgresServer:
        """Return the PostgreSQL server. Skips the test if there is none here."""
        return _empty(self._postgres, why_not_postgres)

    def valkey(self) -> ValkeyServer:
        """Return the Valkey server. Skips the test if there is none here."""
        return _empty(self._valkey, why_not_valkey)

    def stop(self) -> None:
        """End both, as far as they were started."""
        self._postgres.stop()
        self._valkey.stop()


def _empty(server: _AnyServer, why_not: Callable[[], str | None]) -> _AnyServer:
    if server.is_running:
        try:
            server.resume()
            server.reset()
        except (ServerError, OSError):
            # The test before has left it as it cannot go on: with a server of its own the next one can.
            server.stop()
            return server.start()
        return server
    if reason := why_not():
        pytest.skip(f"NOT RUN: {reason}")
    server.stop()  # a killed one is not worth its recovery: the data would be removed
    return server.start()
