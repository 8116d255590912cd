"""Leases of the runs in a Redis store: the server's clock says when one is over, the system that its holder is dead."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from .alive import ALIVE
from .leases import Lease, lost_error, renewed, run_locked_error
from .redis_records import RunKeys
from .redis_scripts import ACQUIRE, RELEASE, RENEW

if TYPE_CHECKING:
    from .redis_session import Connections

__all__ = ["acquire", "drop", "held", "release", "renew", "unexpired", "values"]

_KEPT = 86_400_000
"""For how many milliseconds an expired lease is remembered, so that its holder may still renew it."""


async def acquire(connections: Connections, keys: RunKeys, lease: Lease, ttl: float) -> Lease:
    """Make `lease` the lease of its run. Raises `RunLockedError` if another one holds it, and its holder may live."""
    dead = ""
    while True:
        held = await connections.run(ACQUIRE, [keys.lease], *values(lease, ttl, dead))
        if held is None:
            return lease
        other, mark = _read(lease.run_id, held)
        # Asked once for each holder: whoever is found dead is named to the server, and another may have come meanwhile.
        if other.token == dead or not ALIVE.is_dead(mark):
            raise run_locked_error(other)
        dead = other.token


def values(lease: Lease, ttl: float, dead: str) -> list[Any]:
    """Return the arguments of the script `ACQUIRE`; `dead` is the token of a lease whose holder is dead, or ''."""
    about = {"holder": lease.holder, "since": lease.since, "alive": ALIVE.take(lease.token), "token": lease.token}
    return [lease.token, _milliseconds(ttl), _KEPT, json.dumps(about), dead]


async def renew(connections: Connections, keys: RunKeys, lease: Lease, ttl: float) -> Lease:
    """Let the lease last `ttl` seconds from now. Raises `RunLockedError` if it is held no longer."""
    held = await connections.run(RENEW, [keys.lease], lease.token, _milliseconds(ttl), _KEPT)
    if held is None:
        return renewed(lease, ttl)
    drop(lease)
    raise lost_error(lease, _read(lease.run_id, [held, b"0"])[0] if held else None)


async def release(connections: Connections, keys: RunKeys, lease: Lease) -> None:
    """Free the run, if this lease still holds it."""
    await connections.run(RELEASE, [keys.lease], lease.token)


def drop(lease: Lease) -> None:
    """Note that this process needs the lease no more."""
    ALIVE.drop(lease.token)


async def held(connections: Connections, keys: dict[str, RunKeys]) -> list[Lease]:
    """Return the leases of runs, by their ids, that are not over and whose holders are not known to be dead."""
    return [lease for lease, is_dead in await unexpired(connections, keys) if not is_dead]


async def unexpired(connections: Connections, keys: dict[str, RunKeys]) -> list[tuple[Lease, bool]]:
    """Return the leases of runs, by their ids, that are not over, and whether their holders are known to be dead."""
    pipeline = connections.client.pipeline(transaction=False)
    pipeline.time()
    for each in keys.values():
        pipeline.hmget(each.lease, "lease", "until")
    (seconds, microseconds), *found = await pipeline.execute()
    now, leases = seconds * 1000 + microseconds // 1000, list[tuple[Lease, bool]]()
    for run_id, (text, last) in zip(keys, found, strict=True):
        if text is not None and int(last or 0) > now:
            lease, mark = _read(run_id, [text, int(last) - now])
            leases.append((lease, ALIVE.is_dead(mark)))
    return leases


def _read(run_id: str, held: list[Any]) -> tuple[Lease, str]:
    text, left = held
    try:
        about = json.loads(text)
        lease = Lease(
            run_id,
            str(about["holder"]),
            str(about["token"]),
            float(about["since"]),
            time.time() + int(left) / 1000,
        )
        return lease, str(about["alive"])
    except (ValueError, KeyError, TypeError):
        # Somebody has changed it by hand. It still is in the way until it is over.
        return Lease(run_id, "an unknown worker", "", 0.0, time.time() + int(left) / 1000), ""


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
