"""LangGraph's PostgresSaver: checkpoints in PostgreSQL.

Used as its README recommends (https://pypi.org/project/langgraph-checkpoint-postgres/): `setup()` before the first use,
connections with `autocommit` and `dict_row`, here in a pool, since several threads use the saver; see `langgraph` for
the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .langgraph import GAPS as OF_ALL
from .langgraph import SaverStore

PACKAGES = ("langgraph-checkpoint-postgres", "langgraph-checkpoint", "psycopg[binary,pool]")
SERVER = "postgres"
GAPS = OF_ALL | {
    "S13": "connections must be made after a fork, as the documentation of psycopg says",
    "W06": "neither the saver nor psycopg bounds the wait for a reply, and the README of the saver says nothing of it",
}


@contextmanager
def open_store(location: str, connections: int = 4) -> Iterator[SaverStore]:
    """Open the saver on the database that the location names."""
    from langgraph.checkpoint.postgres import PostgresSaver
    from psycopg.rows import dict_row
    from psycopg_pool import ConnectionPool

    settings: dict[str, Any] = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    with ConnectionPool(location, min_size=1, max_size=connections, kwargs=settings) as pool:
        saver = PostgresSaver(pool)
        saver.setup()
        yield SaverStore(saver)


open_store.pool_of_one = lambda location: open_store(location, connections=1)  # type: ignore[attr-defined]
