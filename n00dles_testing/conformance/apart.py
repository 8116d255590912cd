"""Whether two locations are apart: what is saved in one must not be found in the other.

All that the suite does stands on that. A factory that ignores its location, or a store that keeps its runs in its
module, is told so, and then checked as a factory without a location is.
"""

from __future__ import annotations

from .scenario import Scenario
from .subject import StoreSubject

__all__ = ["same_data"]


async def same_data(subject: StoreSubject, other: StoreSubject) -> str:
    """Return in a sentence how a run saved in one location was found in another; empty if it was not.

    What goes wrong meanwhile is for the clauses to judge.
    """
    async with subject.probe("is a run of one location found in another?") as here:
        handle = await here.create({"location": "the first"})
        await here.save(handle, {"node": "saved in the first"})
        async with other.probe("the other location") as there:
            found = (await there.load_unknown(handle.run_id, {"location": "the second"})).record
            if found.inputs == {"location": "the first"} or "node" in found.completed:
                await here.delete(handle.run_id)  # it may lie among somebody's own
                return _told(here, there)
    return ""


def _told(here: Scenario, there: Scenario) -> str:
    how = "the factory gave the same object" if here.raw is there.raw else "a run saved in one was found in the other"
    return (
        f"two different locations gave the same data ({how}): the factory does not use its location, so the store is "
        "checked like one that takes none, and what needs fresh locations is not run. Open the store in the folder "
        "that the factory is given"
    )
