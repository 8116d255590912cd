"""After a fault: another process finds what the store object says, and the same call made again is done.

Both need a process of their own each, in which nothing is saved after that: a save of something else writes the whole
record, and so hides that the memory of the store and its file differ.
"""

from __future__ import annotations

from typing import Any

from .deeds import DEEDS, Deed, load_step, play_elsewhere
from .disturbed import Step
from .expect import BrokenClause
from .records import Record
from .scenario import Scenario
from .subject import StoreSubject
from .trace_fixes import AGREE, fixed_by

__all__ = ["agrees_with_a_fresh_process", "done_when_made_again", "played"]

_DONE = "the call was acknowledged, whatever failed on the way, so another process finds what it has done"
_SAME = "the call raised: it may be done or not, but the store object and a fresh process must say the same"
_AGAIN = "the call raised, was made again on the same store object, and was acknowledged then"


async def played(
    s: Scenario, deed: Deed, disturbance: dict[str, Any], where: str, after: list[Step], *, traced: bool
) -> dict[str, Any]:
    """Have the deed met by a fault elsewhere, see `play_elsewhere`; the story says where that is."""
    s.tell("what follows happens in another process; “there” is that process")
    try:
        return await play_elsewhere(s, deed, disturbance, where, after, traced=traced)
    except BrokenClause as broken:
        raise _naming_the_error(broken) from broken.__cause__


def _naming_the_error(broken: BrokenClause) -> BrokenClause:
    """Put what a process has printed last into the message: an error that has ended it is named there."""
    printed = dict(broken.details).get("printed", "").split("\n")[-1].strip()
    if printed in ("", "nothing"):
        return broken
    return BrokenClause(f"{broken.message}, having printed last: {printed}", broken.details, broken.picture)


async def agrees_with_a_fresh_process(
    subject: StoreSubject, title: str, where: str, disturbance: dict[str, Any], *, traced: bool
) -> None:
    """Load the run on the object that met the fault, close it, and load it in another process: that finds the same.

    A load that is refused is no answer that could differ.
    """
    async with subject.scenario(f"{title}, {where}, and looked at by a fresh process") as s:
        deed = await DEEDS[title](s)
        load = load_step(deed)
        came = await played(s, deed, disturbance, where, [load], traced=traced)
        [loaded] = came["after"]
        if "raised" in loaded:
            return
        raised = "raised" in came["came"]
        there = Record.from_dict(loaded["record"]) if raised else deed.found[-1]
        with fixed_by(AGREE):
            found = (await s.look_for(deed.run_id, load["inputs"])).record
            s.expect(found).equals(there, because=_SAME if raised else _DONE)


async def done_when_made_again(
    subject: StoreSubject, title: str, where: str, disturbance: dict[str, Any], *, traced: bool
) -> None:
    """Make a call that has raised again; if that is acknowledged, another process finds it done.

    It may be refused: the first call may be done, and the second one then comes from an older revision.
    """
    async with subject.scenario(f"{title}, {where}, and made again") as s:
        deed = await DEEDS[title](s)
        came = await played(s, deed, disturbance, where, [deed.call], traced=traced)
        [again] = came["after"]
        if "raised" not in came["came"] or "raised" in again:
            return
        with fixed_by(AGREE):
            found = (await s.look_for(deed.run_id, load_step(deed)["inputs"])).record
            s.expect(found).equals(deed.found[-1], because=_AGAIN)
