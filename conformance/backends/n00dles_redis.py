"""n00dles RedisStateStore: a Valkey server that syncs each write.

A store of this project, opened as its documentation shows (`docs/how-to/share-a-store.md`), on a server with the
settings that it demands there. The adapter adds nothing.
"""

from __future__ import annotations

from n00dles import RedisStateStore

PACKAGES = ("n00dles-testing[redis]",)
IS_OURS = True
SERVER = "valkey"
GAPS: dict[str, str] = {}


def open_store(location: str) -> RedisStateStore:
    """Open the database that the location names."""
    return RedisStateStore(location)


open_store.pool_of_one = lambda location: RedisStateStore(location, max_connections=1)  # type: ignore[attr-defined]
