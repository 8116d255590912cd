"""A save of a worker that has slept while another went on: what may become of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .records import Record, difference
from .scenario import Scenario

__all__ = ["expect_nothing_lost"]


async def expect_nothing_lost(s: Scenario, run_id: str, outputs: Mapping[str, Any], *, is_taken: bool) -> str:
    """Compare a run with what was acknowledged: before the late save of these outputs, and by it if it `is_taken`.

    Returns what has become of the late save, in a word. A node that both workers had completed may keep either output.
    Raises `BrokenClause`.
    """
    __tracebackhide__ = True
    before = s.acknowledged[run_id]
    came = (await s.load(run_id)).record
    if not is_taken:
        s.expect(came).equals(before, because="the late save was refused, so the run stays as it was")
        return "refused"
    both = before.after(outputs)
    stays = ""
    for node in before.completed.keys() & outputs.keys() & came.completed.keys():
        if difference(before.completed[node], came.completed[node]) is None:
            both.completed[node] = came.completed[node]
            stays = ", keeping the other worker's output of a node that both had completed"
        else:
            stays = ", replacing the other worker's output of a node that both had completed"
    allowed = Record(both.inputs, both.completed, both.order)
    s.expect(came.by_name()).equals(
        allowed.by_name(), because="both workers' saves were acknowledged, so each node is there"
    )
    s.acknowledged[run_id] = came
    return f"merged{stays}"
