"""The capability `load`: reading a run without creating it."""

from __future__ import annotations

from typing import Any

from n00dles.errors import N00dlesError

from ..records import Record, UnreadableReplyError, difference, show
from ..scenario import Handle, Scenario
from ..spoil import spoil_run
from ..subject import StoreSubject
from .offered import Denied, Method, UnusableError, WrongError, probing

__all__ = ["load"]


async def load(subject: StoreSubject) -> str:
    """Load a run that is stored, also after edits and saves, and one that is not; the second must not be created."""
    async with probing(subject, "does load read a run, and create none?") as s:
        handle = await s.create({"topic": "cats"})
        await s.save(handle, {"researcher": {"facts": ["purr"]}})
        method = Method(s, "load", "run_id")

        came = await method.must(handle.run_id)
        if came is None:
            raise WrongError("load of a run that is stored returned None")
        found = difference(s.acknowledged[handle.run_id], await _record(s, came, handle.run_id))
        if found is not None:
            raise WrongError(f"load of a run that is stored does not give what was acknowledged: {found}")

        await _again(s, method, handle, came)

        unknown = subject.fresh_run_id()
        how = await _of_an_unknown_run(method, unknown)
        created = (await s.create({"created": "anew"}, unknown)).record
        if created != s.acknowledged[unknown]:
            raise WrongError(f"load of an unknown run created it: later it was found with {created}")
    return f"load gave a run as it was saved; of an unknown run it {how}, and created none"


async def _again(s: Scenario, method: Method, handle: Handle, came: Any) -> None:
    """Load it once more, after an edit of what came first, and after each of two saves."""
    spoil_run(came)
    after = "what the first load gave was edited"
    for outputs in ({"writer": "On Cats"}, {"editor": "shorter"}, {}):
        again = await _record(s, await method.must(handle.run_id), handle.run_id)
        found = difference(s.acknowledged[handle.run_id], again)
        if found is not None:
            raise WrongError(f"load does not give what was acknowledged last, after {after}: {found}")
        await s.save(handle, outputs)
        after = "a save"


async def _record(s: Scenario, came: Any, run_id: str) -> Record:
    try:
        (await s.opened()).context(came, run_id)
        return Record.read(came)
    except (UnreadableReplyError, N00dlesError) as error:
        raise UnusableError(f"load returned {show(came)}, which n00dles could not read: {error}") from error


async def _of_an_unknown_run(method: Method, run_id: str) -> str:
    try:
        came = await method(run_id)
    except Denied:
        raise
    except Exception as error:
        return f"raised {type(error).__name__}"
    if came is not None:
        raise WrongError(f"load of an unknown run returned {show(came)}, and neither None nor an error")
    return "gave None"
