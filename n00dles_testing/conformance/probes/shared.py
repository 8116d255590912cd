"""The capability `shared`: who has a location open at the same time sees what the others have saved."""

from __future__ import annotations

from ..expect import BrokenClause
from ..scenario import Scenario
from ..subject import StoreSubject
from .offered import AbsentError, probing

__all__ = ["shared"]


async def shared(subject: StoreSubject) -> str:
    """Have the store open here and in another process, save in each, and look in the other."""
    async with probing(subject, "do two processes that are open at once see each other's saves?") as s:
        first = await s.create({"topic": "cats"})
        async with s.elsewhere() as other:
            # Open before the saves that it must see: what is only read when a store opens is not shared.
            opening = await other.create({"topic": "birds"})
            await s.save(first, {"researcher": "cats purr"})
            try:
                seen = (await other.look_for(first.run_id, {"topic": "dogs"})) == s.acknowledged[first.run_id]
                await other.save(first.run_id, {"writer": "On Cats"})
            except BrokenClause as broken:
                raise AbsentError(f"with the store open in two processes, {broken.message}") from broken
            if not seen:
                s.acknowledged.pop(opening)
                raise AbsentError(
                    "a run that was saved in one process is not found in another that had the store open meanwhile"
                )
            if not await _sees(s, first.run_id):
                raise AbsentError(
                    "what another process has saved is not found in this one, which had the store open meanwhile"
                )
            await s.delete(opening)
    return "two processes that had the store open at the same time each found what the other had saved"


async def _sees(s: Scenario, run_id: str) -> bool:
    try:
        return (await s.load(run_id)).record == s.acknowledged[run_id]
    except BrokenClause:
        return False
