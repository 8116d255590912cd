"""The capability `leases`: one holder at a time may carry a run on."""

from __future__ import annotations

from typing import Any

from ..records import show
from ..scenario import describe
from ..subject import StoreSubject
from .offered import Denied, Method, UnusableError, WrongError, attempts, probing

__all__ = ["leases"]

_LONG = 600.0
_SHORT = 0.3
_PATIENCE = 10.0


async def leases(subject: StoreSubject) -> str:
    """Acquire twice, renew, release and acquire again; then let a short lease expire."""
    async with probing(subject, "do leases let one holder at a time work?") as s:
        await s.open()
        methods = [
            Method(s, "acquire", "run_id", "holder", "ttl"),
            Method(s, "renew", "lease", "ttl"),
            Method(s, "release", "lease"),
        ]
        acquire, renew, release = methods
        run_id, other_run = subject.fresh_run_id(), subject.fresh_run_id()

        lease = await _lease(acquire, run_id, "first", _LONG)
        refused = await _is_refused(acquire, run_id)
        await release.must(await _lease(acquire, other_run, "second", _LONG))
        lease = await renew.must(lease, _LONG)
        await _is_refused(acquire, run_id, after=" though it was just renewed")
        await release.must(lease)
        lease = await _lease(acquire, run_id, "second", _LONG, after=" after the first was released")
        await release.must(lease)

        await _lease(acquire, run_id, "first", _SHORT)
        await release.must(await _once_expired(acquire, run_id))
    return f"a second holder was refused ({refused}), and let in after a release and after the lease had expired"


async def _lease(acquire: Method, run_id: str, holder: str, ttl: float, *, after: str = "") -> Any:
    try:
        lease = await acquire(run_id, holder, ttl)
    except Denied:
        raise
    except Exception as error:
        raise WrongError(f"acquire of a run that nobody holds raised {describe(error)}{after}") from error
    if lease is None or lease is False:
        raise UnusableError(f"acquire of a run that nobody holds returned {show(lease)}{after}, and not a lease")
    return lease


async def _is_refused(acquire: Method, run_id: str, *, after: str = "") -> str:
    try:
        came = await acquire(run_id, "second", _LONG)
    except Denied:
        raise
    except Exception as error:
        return type(error).__name__
    if came is None or came is False:
        raise UnusableError(
            f"acquire returned {show(came)} for a run that another one holds{after}; n00dles expects RunLockedError"
        )
    raise WrongError(f"a second holder was given a lease of a run that another one holds{after}")


async def _once_expired(acquire: Method, run_id: str) -> Any:
    async for _ in attempts(_PATIENCE, _SHORT / 3):
        try:
            return await acquire(run_id, "second", _LONG)
        except Denied:
            raise
        except Exception:
            continue
    raise WrongError(f"a lease of {_SHORT:g} s still held its run after {_PATIENCE:g} s, and nobody renewed it")
