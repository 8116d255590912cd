"""The capability `shared`: who has a location open at the same time sees what the others have saved."""

from __future__ import annotations

from ..expect import BrokenClause
from ..scenario import Handle, Scenario
from ..subject import StoreSubject
from .offered import AbsentError, probing

__all__ = ["shared"]


async def shared(subject: StoreSubject) -> str:
    """Have the store open here and in another process, save in each, and look in the other."""
    async with probing(subject, "do two processes that are open at once see each other's saves?") as s:
        first = await s.create({"topic": "cats"})
        await s.save(first, {"reviewer": "approved"})
        try:
            await _side_by_side(s, first)
        except BrokenClause as broken:
            raise AbsentError(f"with the store open in two processes, {broken.message}") from broken
    return "two processes that had the store open at the same time each found what the other had saved"


async def _side_by_side(s: Scenario, first: Handle) -> None:
    async with s.elsewhere(patience=s.subject.patience) as other:
        # Open before the saves that it must see: what is only read when a store opens is not shared.
        await other.create({"topic": "birds"})
        await s.save(first, {"researcher": "cats purr"})
        if (await other.look_for(first.run_id, {"topic": "dogs"})) != s.acknowledged[first.run_id]:
            raise AbsentError(
                "a run that was saved in one process is not found in another that had the store open meanwhile"
            )
        await other.save(first.run_id, {"writer": "On Cats"})
        if (await s.load(first.run_id)).record != s.acknowledged[first.run_id]:
            raise AbsentError(
                "what another process has saved is not found in this one, which had the store open meanwhile"
            )
