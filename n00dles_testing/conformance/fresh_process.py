"""Reading in a fresh process what was saved in this one, for clauses that are about values and not about keeping."""

from __future__ import annotations

from .elsewhere import Elsewhere
from .expect import BrokenClause
from .scenario import Scenario

__all__ = ["expect_in_a_fresh_process"]


async def expect_in_a_fresh_process(s: Scenario, run_id: str, *, because: str) -> None:
    """Close the store, load a run in a fresh interpreter, and compare it with what was acknowledged.

    A run of one plain text tells first whether anything is found there at all: that nothing is, C01 tells, and here it
    is a note.
    """
    control = await s.create({"topic": "cats"})
    await s.save(control, {"node": "plain text"})
    await s.close()

    async with s.elsewhere(fresh=True) as other:
        if not await _is_found(s, other, control.run_id):
            s.subject.notes.append("not read in a fresh process: what is plain is not found there either (see C01)")
            return
        s.expect(await other.load(run_id)).equals(s.acknowledged[run_id], because=because)


async def _is_found(s: Scenario, other: Elsewhere, run_id: str) -> bool:
    try:
        return await other.load(run_id) == s.acknowledged[run_id]
    except BrokenClause:
        return False
