"""The capability `prune`: forgetting finished runs that are older than a limit, and no others."""

from __future__ import annotations

from typing import Any

from ..durability import keeps_nothing
from ..records import show
from ..scenario import Handle, Scenario
from ..subject import StoreSubject
from .offered import Method, UntoldError, UnusableError, WrongError, attempts, probing

__all__ = ["prune"]

_AN_HOUR = 3600.0
_JUST_NOW = 0.01
_PATIENCE = 5.0
"""A store may keep its times in whole seconds."""


async def prune(subject: StoreSubject) -> str:
    """Prune with a finished run that is too young, then with one that is old enough, beside one that is not finished.

    Where the location is not the suite's own, nothing is pruned: the runs that went would be somebody's.
    """
    async with probing(subject, "does prune remove what is finished and old, and nothing else?") as s:
        await s.open()
        method = Method(s, "prune", keywords=("older_than",))
        if not subject.target.takes_location and not await keeps_nothing(subject):
            raise UntoldError(
                "prune is there, and was not called: it would remove runs that are not the suite's. Check the store "
                "through a factory that takes a location"
            )
        finished, unfinished = await s.create({"topic": "cats"}), await s.create({"topic": "dogs"})
        finished.context.status = "finished"
        for handle in (finished, unfinished):
            await s.save(handle, {"researcher": "facts"})

        await method.must(older_than=_AN_HOUR)
        for handle in (finished, unfinished):
            if not await _is_there(s, handle):
                raise WrongError("prune(older_than=3600) removed a run that was saved a moment ago")

        await _is_pruned_in_time(s, method, finished)
        if not await _is_there(s, unfinished):
            raise WrongError("prune removed a run that was not finished")
    return "prune removed a finished run once it was older than the limit, and neither a younger nor an unfinished one"


async def _is_pruned_in_time(s: Scenario, method: Method, finished: Handle) -> None:
    async for _ in attempts(_PATIENCE, 5 * _JUST_NOW):
        came = await method.must(older_than=_JUST_NOW)
        if not await _is_there(s, finished):
            _names(came, finished.run_id)
            return
    raise WrongError(f"prune(older_than={_JUST_NOW}) did not remove a finished run within {_PATIENCE:g} s")


async def _is_there(s: Scenario, handle: Handle) -> bool:
    return (await s.load(handle.run_id, {"topic": "another"})).record == s.acknowledged[handle.run_id]


def _names(came: Any, run_id: str) -> None:
    if not isinstance(came, list | tuple | set | frozenset) or run_id not in came:
        raise UnusableError(f"prune removed a run, and returned {show(came)}, and not a list with its id")
