"""The capability `list_runs`: saying which runs are stored."""

from __future__ import annotations

from typing import Any

from ..records import show
from ..subject import StoreSubject
from .offered import Method, UnusableError, WrongError, probing

__all__ = ["list_runs"]


async def list_runs(subject: StoreSubject) -> str:
    """Store three runs, delete one, and look for them in the list."""
    async with probing(subject, "does list_runs name what is stored?") as s:
        handles = [await s.create({"topic": "cats"}) for _ in range(3)]
        for handle in handles:
            await s.save(handle, {"researcher": "cats purr"})
        method = Method(s, "list_runs", keywords=("status", "limit"))
        gone = handles.pop().run_id
        await s.delete(gone)

        listed = _ids(await method.must(status=None, limit=None))
        missing = [handle.run_id for handle in handles if handle.run_id not in listed]
        if missing:
            raise WrongError(f"list_runs names {len(listed)} runs, and not {missing[0]!r}, which is stored")
        if gone in listed:
            raise WrongError(f"list_runs names {gone!r}, which was deleted")
    return "list_runs named two runs that were stored, and not one that was deleted"


def _ids(came: Any) -> set[str]:
    if not isinstance(came, list | tuple | set | frozenset):
        raise UnusableError(f"list_runs returned a {type(came).__name__}, and not a list of runs")
    without = [each for each in came if not isinstance(getattr(each, "run_id", None), str)]
    if without:
        raise UnusableError(f"list_runs returned {show(without[0])}, which has no attribute run_id")
    return {each.run_id for each in came}
