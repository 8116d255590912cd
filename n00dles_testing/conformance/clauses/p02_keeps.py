"""P02: a power loss takes no acknowledged save away, and brings nothing that was never saved."""

from __future__ import annotations

from ...powerloss.models import MODELS
from ..power_safe import (
    KEEPS,
    expect_enough,
    expect_followed,
    expect_none,
    power_losses,
    recoveries_tried,
    required,
    states_tried,
    strictly,
)
from ..registry import clause
from ..subject import StoreSubject


@clause("P02", level=3, title="no power loss takes an acknowledged save away, or brings what was never saved")
async def keeps_what_was_acknowledged(subject: StoreSubject) -> None:
    """What the store acknowledged before the power failed is there when it is back.

    An acknowledgement says that the caller may forget: the node is paid for, the mail is sent. A store that
    acknowledges before it has synced takes that back with the next power cut, and nobody has seen an error.

    In each state that the disk may hold (see P01) a run is as its last acknowledged call has left it, or as the call
    would have left it that was going on: not older (LOST_ACK; that includes a deleted run which is back), not put
    together from several saves (MIXED), and nothing that was never saved (PHANTOM). The power may fail again, while the
    store opens on that state and repairs what was left (of a few such states, see P01): then the same must be there
    once more (LOST_IN_RECOVERY). A journal is removed only once what was repaired from it is synced.

    What is mostly missing: a sync of the file, and, for a name that is new, renamed or removed, one of its folder.
    Python's `sqlite3` with SQLite's default settings does not sync the removal of its journal, so that a power loss
    takes the last commit back; `PRAGMA synchronous = EXTRA` or a write-ahead log with `FULL` does.

    Seen in: agno-agi/agno #6089 (what was acknowledged lies in a buffer).
    """
    workload, came = await power_losses(subject)
    reports = required(came["models"])
    for report in reports:
        async with subject.scenario(f"the power fails: {MODELS[report['model']].about}") as s:
            expect_none(s, workload, report, KEEPS, among=reports)
    subject.notes.append(states_tried(came["models"]))
    subject.notes.append(recoveries_tried(came["models"]))
    subject.notes.append(strictly(came["models"], KEEPS))
    expect_enough(reports)
    expect_followed(reports)
