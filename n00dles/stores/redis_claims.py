"""Claims in a Redis store: runs that are to be worked on, the oldest first, each leased in one step of the server.

Runs are spread over hash tags, which a cluster keeps on different nodes, so no step can look at all of them. The search
therefore only reads; what it has found is leased by a step that first sees whether the run still is as it was found.
Whoever comes second goes on to the next run, and nobody waits.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import StateStoreError
from . import redis_leases
from .claims import OPEN, Claim
from .leases import Lease, new_lease
from .redis_records import Head, RunKeys, index_keys
from .redis_scripts import CLAIM, TAKES_WRITES

if TYPE_CHECKING:
    from .redis_session import Connections

__all__ = ["RedisClaim"]

_FIRST_PAGE = 8
_LOOKED_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class _Found:
    run_id: str
    pipeline: str
    head: bytes
    keys: RunKeys
    dead: str
    """The token of a lease whose holder is dead, or ''."""


@dataclass
class RedisClaim:
    """One call of `claim`. `work` may be called again when a connection breaks: it knows its own leases again."""

    prefix: str
    pipelines: Collection[str]
    holder: str
    ttl: float
    limit: int
    skip: Collection[str]
    _leases: dict[str, Lease] = field(default_factory=dict)

    async def work(self, connections: Connections) -> list[Claim]:
        """Return at most `limit` runs, each with a lease.

        Also where there is nothing to do, a server that takes no writes is told: its workers would wait for ever.
        """
        claims = list[Claim]()
        async for names in self._oldest(connections):
            for start in range(0, len(names), _LOOKED_AT_ONCE):
                found = await self._free(connections, names[start : start + _LOOKED_AT_ONCE])
                while found and len(claims) < self.limit:
                    some = found[: self.limit - len(claims)]
                    claims += await self._leased(connections, some)
                    del found[: len(some)]
                if len(claims) >= self.limit:
                    return claims
        return claims

    @property
    def may_have_leased(self) -> bool:
        """Whether anything was tried that `release` would undo."""
        return bool(self._leases)

    async def release(self, connections: Connections) -> None:
        """Let go of everything that may have been leased."""
        for run_id, lease in self._leases.items():
            await redis_leases.release(connections, RunKeys(self.prefix, run_id), lease)

    def drop(self, claims: Collection[Claim] = ()) -> None:
        """Note which leases this process still has."""
        kept = {claim.run_id for claim in claims}
        for run_id, lease in self._leases.items():
            if run_id not in kept:
                redis_leases.drop(lease)

    async def _oldest(self, connections: Connections) -> AsyncIterator[list[str]]:
        """Yield the keys of all open runs in pieces, those that were last saved longest ago first."""
        indexes = [index for status in OPEN for index in index_keys(self.prefix, status)]
        seen, low, page = set[str](), "-inf", max(_FIRST_PAGE, self.limit)
        while True:
            pipeline, last = connections.client.pipeline(transaction=False), float("inf")
            for index, _ in indexes:
                pipeline.zrange(index, low, "+inf", byscore=True, offset=0, num=page, withscores=True)
            if not seen:
                pipeline.eval(TAKES_WRITES.text, 0)
            found = list[tuple[float, str]]()
            for (_, tag), rows in zip(indexes, await pipeline.execute(), strict=False):
                found += [(score, tag + name.decode()) for name, score in rows]
                if len(rows) == page:
                    last = min(last, rows[-1][1])
            # Behind the end of a page that is full there may be older ones than those of another page.
            ready = [name for score, name in sorted(found) if score <= last and name not in seen]
            yield ready
            if last == float("inf"):
                return
            seen.update(ready)
            low, page = repr(last), 2 * page

    async def _free(self, connections: Connections, names: list[str]) -> list[_Found]:
        """Return those of these runs that are to be worked on, and that no lease holds whose holder may live."""
        pipeline = connections.client.pipeline(transaction=False)
        for name in names:
            pipeline.hmget(name, "id", "head")
        found = dict[str, tuple[bytes, Head]]()
        for run_id, text in await pipeline.execute():
            if run_id is None or text is None:
                continue
            name = run_id.decode("utf-8", "replace")
            # A damaged one is told to whoever lists or loads it.
            with suppress(StateStoreError, ValueError, TypeError, IndexError):
                head = Head.read(name, text)
                if head.head.status in OPEN and head.head.pipeline in self.pipelines and name not in self.skip:
                    found[name] = text, head
        keys = {run_id: RunKeys(self.prefix, run_id) for run_id in found}
        unexpired = await redis_leases.unexpired(connections, keys) if keys else []
        held = {lease.run_id: (lease.token, is_dead) for lease, is_dead in unexpired}
        free = list[_Found]()
        for run_id, (text, head) in found.items():
            token, is_dead = held.get(run_id, ("", True))
            mine = self._leases.get(run_id)
            if is_dead or (mine is not None and mine.token == token):
                free.append(_Found(run_id, str(head.head.pipeline), text, keys[run_id], token))
        return free

    async def _leased(self, connections: Connections, found: list[_Found]) -> list[Claim]:
        """Lease those of these runs that still are as they were found, in one round trip."""
        commands = list[tuple[list[str], list[Any]]]()
        for run in found:
            lease = self._leases.setdefault(run.run_id, new_lease(run.run_id, self.holder, self.ttl))
            values = redis_leases.values(lease, self.ttl, run.dead)
            commands.append(([run.keys.lease, run.keys.run], [*values, run.head]))
        outcomes = await connections.run_all(CLAIM, commands)
        return [
            Claim(run.run_id, run.pipeline, self._leases[run.run_id])
            for run, outcome in zip(found, outcomes, strict=True)
            if outcome is None
        ]
