"""What a store holds while nodes run: descriptors of this process, open transactions, connections to its server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from .idle_sqlite import open_transactions
from .scenario import Scenario

if TYPE_CHECKING:
    from .subject import StoreSubject

__all__ = ["expect_no_transaction", "open_descriptors", "why_no_server_is_asked"]

_SAMPLES, _PAUSE = 10, 0.1
"""What is seen in each sample, for a second, lasts: a pool may be rolling back what it was just given."""
_DRIVERS = {"postgres": "psycopg", "valkey": "redis"}

_IN_TRANSACTION = """
SELECT pid::text || ', since ' || xact_start::text || ', after ' || left(query, 200) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'"""


def open_descriptors() -> int | None:
    """Return how many descriptors this process has open, None where the system does not show them."""
    try:
        return len(os.listdir("/dev/fd"))
    except OSError:
        return None


def why_no_server_is_asked(subject: StoreSubject) -> str:
    """Say why the server of a store is not asked for open transactions, if it has one; empty if it is, or has none."""
    served = subject.served
    if served is None:
        return ""
    if served.server is None:
        return "the server was not asked for open transactions: others may use it"
    driver = _DRIVERS[served.service.kind]
    return "" if find_spec(driver) else f"the server was not asked for open transactions: {driver} is not installed"


async def expect_no_transaction(s: Scenario, *, because: str) -> None:
    """Ask whoever can be asked for a transaction that is open. Raises `BrokenClause` with one that stays open."""
    __tracebackhide__ = True
    found = open_transactions(s.folder)
    served = s.subject.served
    if served is not None and not why_no_server_is_asked(s.subject):
        assert s.location is not None
        ask = _of_postgres if served.service.kind == "postgres" else _of_valkey
        found = await _lasting(partial(ask, s.location))
    s.expect("a look from the outside").has_no(
        f"a transaction is open: {found[0]}" if found else None, allowed="no open transaction", because=because
    )


async def _lasting(ask: Callable[[], Awaitable[set[str]]]) -> list[str]:
    """Return what is found in each of several samples."""
    found = await ask()
    for _ in range(_SAMPLES if found else 0):
        await asyncio.sleep(_PAUSE)
        found &= await ask()
        if not found:
            break
    return sorted(found)


async def _of_postgres(location: str) -> set[str]:
    import psycopg

    from n00dles.stores.postgres_target import parse_target

    conninfo = parse_target(location, schema=None, pool_size=None, timeout=None).conninfo
    async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True) as connection:
        rows = await (await connection.execute(_IN_TRANSACTION)).fetchall()
    return {f"process {row[0]}" for row in rows}


async def _of_valkey(location: str) -> set[str]:
    """Say which clients are between MULTI and EXEC, or watch a key."""
    from redis.asyncio import Redis

    from n00dles.stores.redis_settings import parse_url

    client = Redis.from_url(parse_url(location).url)
    try:
        clients = await client.client_list()
    finally:
        with suppress(Exception):
            await client.aclose()
    return {
        f"client {each['id']}, after {each.get('cmd')}"
        for each in clients
        if int(each.get("multi", -1)) >= 0 or int(each.get("watch", 0)) > 0
    }
