"""Claims in the PostgreSQL store: runs that are to be worked on are found and leased in one statement.

Rows that another worker is claiming at that moment are skipped (`FOR UPDATE SKIP LOCKED`), so nobody waits for anybody.
Two claims that have seen the same run still meet at the row of its lease, and one of them gets it.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from typing import Any

from psycopg.sql import SQL, Identifier

from .alive import ALIVE
from .claims import Claim
from .leases import Lease
from .postgres_leases import LONGEST
from .postgres_pool import Connection
from .postgres_records import run_hash

__all__ = ["PostgresClaims"]


class PostgresClaims:
    """The statements on the runs of one schema that nobody works on."""

    def __init__(self, schema: str) -> None:
        def query(text: str) -> bytes:
            return SQL(text).format(s=Identifier(schema)).as_bytes()

        self._marks = query("SELECT DISTINCT alive FROM {s}.leases WHERE expires > clock_timestamp()")
        self._claim = query(_CLAIM)
        self._release = query("DELETE FROM {s}.leases WHERE token = ANY (%s::text[])")
        self._in_doubt: set[str] = set()

    async def claim(
        self,
        connection: Connection,
        pipelines: Collection[str],
        holder: str,
        ttl: float,
        *,
        limit: int,
        skip: Collection[str],
    ) -> list[Claim]:
        """Return what could be leased. After an error, `release` or the next call lets go of what was leased."""
        await self.release(connection)
        tokens = [secrets.token_hex(8) for _ in range(limit)]
        claims = list[Claim]()
        try:
            values: dict[str, Any] = {
                "pipelines": [name.encode() for name in pipelines],
                "skip": [run_hash(run_id) for run_id in skip],
                "holder": holder.encode("utf-8", "replace"),
                "ttl": min(float(ttl), LONGEST),
                "dead": await self._dead(connection),
            }
            for token in tokens:
                values["alive"] = ALIVE.take(token)
            while len(claims) < limit:
                values |= {"tokens": tokens[len(claims) :], "limit": limit - len(claims)}
                rows = await (await connection.execute(self._claim, values, binary=True)).fetchall()
                leased = [row for row in rows if row[2] is not None]
                for run_id, pipeline, token, since, expires in leased:
                    lease = Lease(bytes(run_id).decode(), holder, token, since, expires)
                    claims.append(Claim(lease.run_id, bytes(pipeline).decode(), lease))
                if len(leased) == len(rows):
                    break
                # Another claim was faster with some of them; there may be more behind.
                tokens = [*(claim.lease.token for claim in claims), *_unused(tokens, claims)]
        except BaseException:
            self._in_doubt.update(tokens)
            raise
        finally:
            for token in _unused(tokens, claims):
                ALIVE.drop(token)
        return claims

    async def release(self, connection: Connection) -> None:
        """Let go of what was leased by calls that did not end well."""
        tokens = self._in_doubt.copy()
        if tokens:
            await connection.execute(self._release, (list(tokens),))
            self._in_doubt -= tokens
            for token in tokens:
                ALIVE.drop(token)

    async def _dead(self, connection: Connection) -> list[str]:
        """Return the marks of processes that hold leases and are known to be dead."""
        marks = await (await connection.execute(self._marks, binary=True)).fetchall()
        return [mark for (mark,) in marks if ALIVE.is_dead(mark)]


def _unused(tokens: Collection[str], claims: Collection[Claim]) -> list[str]:
    used = {claim.lease.token for claim in claims}
    return [token for token in tokens if token not in used]


# Of a run that waits, `changed_at` is its last save; one that was interrupted has been saved since.
_CLAIM = """
WITH found AS (
    SELECT run_hash, run_id, pipeline FROM {s}.runs AS r
    WHERE status IN ('waiting', 'running') AND pipeline = ANY (%(pipelines)s::bytea[])
        AND run_hash <> ALL (%(skip)s::bytea[])
        AND NOT EXISTS (
            SELECT FROM {s}.leases AS l
            WHERE l.run_hash = r.run_hash AND expires > clock_timestamp() AND alive <> ALL (%(dead)s::text[]))
    ORDER BY CASE status WHEN 'waiting' THEN changed_at ELSE (
        SELECT saved_at FROM {s}.saves AS s WHERE s.run_hash = r.run_hash ORDER BY revision DESC LIMIT 1) END
    LIMIT %(limit)s FOR UPDATE OF r SKIP LOCKED
), numbered AS (SELECT *, row_number() OVER () AS place FROM found
), leased AS (
    INSERT INTO {s}.leases AS l (run_hash, holder, token, alive, since, expires)
    SELECT run_hash, %(holder)s, (%(tokens)s::text[])[place], %(alive)s, clock_timestamp(),
        clock_timestamp() + %(ttl)s::double precision * interval '1 second'
    FROM numbered
    ON CONFLICT (run_hash) DO UPDATE SET holder = EXCLUDED.holder, token = EXCLUDED.token, alive = EXCLUDED.alive,
        since = EXCLUDED.since, expires = EXCLUDED.expires
    WHERE l.expires <= clock_timestamp() OR l.alive = ANY (%(dead)s::text[])
    RETURNING run_hash, token, since, expires)
SELECT run_id, pipeline, token, extract(epoch FROM since)::double precision,
    extract(epoch FROM expires)::double precision
FROM numbered LEFT JOIN leased USING (run_hash) ORDER BY place"""
