"""n00dles PostgresStateStore: a schema of a PostgreSQL database.

A store of this project, opened as its documentation shows (`docs/how-to/share-a-store.md`), on a server with the
settings that PostgreSQL comes with. The adapter adds nothing.
"""

from __future__ import annotations

from n00dles import PostgresStateStore

PACKAGES = ("n00dles-testing[postgres]",)
IS_OURS = True
SERVER = "postgres"
GAPS: dict[str, str] = {}


def open_store(location: str) -> PostgresStateStore:
    """Open the database that the location names."""
    return PostgresStateStore(location)


open_store.pool_of_one = lambda location: PostgresStateStore(location, pool_size=1)  # type: ignore[attr-defined]
