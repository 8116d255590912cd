"""Leases of runs in the PostgreSQL store: one row a run, and the server's clock decides.

No session holds anything: a lease is a row, so it works behind a transaction pooler, and whoever is cut off from the
server keeps its lease until it expires.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from psycopg.sql import SQL, Identifier

from ..errors import RunLockedError
from .alive import ALIVE
from .leases import Lease, lost_error, run_locked_error
from .postgres_pool import Connection
from .postgres_records import run_hash

__all__ = ["LONGEST", "PostgresLeases"]

LONGEST = 1e9  # seconds; PostgreSQL has no infinite intervals before 17


class PostgresLeases:
    """The statements on the leases of one schema. Each method is one call on a connection, and may be called again."""

    def __init__(self, schema: str) -> None:
        def query(text: str) -> bytes:
            return SQL(text).format(s=Identifier(schema)).as_bytes()

        self._acquire = query(_ACQUIRE)
        self._renew = query(_RENEW)
        self._release = query("DELETE FROM {s}.leases WHERE run_hash = %s::bytea AND token = %s")
        self._held = query(_HELD)

    async def acquire(self, connection: Connection, run_id: str, holder: str, token: str, ttl: float) -> Lease:
        """Return a lease with this token. Raises `RunLockedError` if another one holds the run."""
        values: dict[str, Any] = {
            "hash": run_hash(run_id),
            "holder": holder.encode("utf-8", "replace"),
            "token": token,
            "alive": ALIVE.take(token),
            "ttl": min(float(ttl), LONGEST),
            "dead": "",
        }
        while True:
            row = await (await connection.execute(self._acquire, values, binary=True)).fetchone()
            if row is not None:
                return Lease(run_id, holder, token, *row)
            for lease, mark in await self._found(connection, [run_id]):
                if not ALIVE.is_dead(mark):
                    raise run_locked_error(lease)
                values["dead"] = lease.token

    async def renew(self, connection: Connection, lease: Lease, ttl: float) -> Lease:
        """Return the lease, to last `ttl` seconds from now. Raises `RunLockedError` if it is held no longer."""
        values = {"hash": run_hash(lease.run_id), "token": lease.token, "ttl": min(float(ttl), LONGEST)}
        row = await (await connection.execute(self._renew, values, binary=True)).fetchone()
        if row is None:
            ALIVE.drop(lease.token)
            raise await self._lost(connection, lease)
        return Lease(lease.run_id, lease.holder, lease.token, *row)

    async def release(self, connection: Connection, run_id: str, token: str) -> None:
        """Free the run, if the lease of this token still holds it."""
        await connection.execute(self._release, (run_hash(run_id), token))
        ALIVE.drop(token)

    async def held(self, connection: Connection, run_ids: Collection[str]) -> list[Lease]:
        """Return the leases that are held now of any of these runs."""
        return [lease for lease, mark in await self._found(connection, run_ids) if not ALIVE.is_dead(mark)]

    async def _lost(self, connection: Connection, lease: Lease) -> RunLockedError:
        return lost_error(lease, next((found for found, _ in await self._found(connection, [lease.run_id])), None))

    async def _found(self, connection: Connection, run_ids: Collection[str]) -> list[tuple[Lease, str]]:
        by_hash = {run_hash(run_id): run_id for run_id in run_ids}
        rows = await (await connection.execute(self._held, (list(by_hash),), binary=True)).fetchall()
        return [
            (Lease(by_hash[bytes(key)], bytes(holder).decode("utf-8", "replace"), token, since, expires), mark)
            for key, holder, token, since, expires, mark in rows
        ]


_TIMES = "extract(epoch FROM since)::double precision, extract(epoch FROM expires)::double precision"

_EXPIRES = "clock_timestamp() + %(ttl)s::double precision * interval '1 second'"

_ACQUIRE = f"""
INSERT INTO {{s}}.leases AS l (run_hash, holder, token, alive, since, expires)
VALUES (%(hash)s, %(holder)s, %(token)s, %(alive)s, clock_timestamp(), {_EXPIRES})
ON CONFLICT (run_hash) DO UPDATE SET holder = EXCLUDED.holder, token = EXCLUDED.token, alive = EXCLUDED.alive,
    since = clock_timestamp(), expires = {_EXPIRES}
WHERE l.expires <= clock_timestamp() OR l.token = %(token)s OR l.token = %(dead)s
RETURNING {_TIMES}"""  # noqa: S608 - texts of ours

_RENEW = f"""
UPDATE {{s}}.leases SET expires = {_EXPIRES} WHERE run_hash = %(hash)s AND token = %(token)s
RETURNING {_TIMES}"""  # noqa: S608 - texts of ours

_HELD = f"""
SELECT run_hash, holder, token, {_TIMES}, alive FROM {{s}}.leases
WHERE run_hash = ANY (%s::bytea[]) AND expires > clock_timestamp()"""  # noqa: S608 - texts of ours
