"""P01: whatever the disk may hold after a power loss, the store opens on it, loads, and goes on."""

from __future__ import annotations

from ...powerloss.models import MODELS
from ..power_safe import (
    OPENS,
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


@clause("P01", level=3, title="whatever the disk holds after a power loss, the store opens, loads and goes on")
async def opens_after_a_power_loss(subject: StoreSubject) -> None:
    """A power cut leaves no store that cannot be opened, whatever of the unsynced writes has reached the disk.

    When a process is killed, all that it wrote is there. When the power fails, only what was synced is sure to be: of
    the rest any part may be there, in an order that the file system chooses; a rename may be there without the bytes of
    the file that it names. So the store's system calls are recorded while two runs are created, saved (once large, so
    that a write has parts, and once both at the same time), closed, opened again, saved, and one is deleted and created
    anew. From the recording every state is built that the disk could be in had the power failed at any moment, under
    three models: `kill` (the writes up to some point), `ext4` as it is mounted by default, and `journaled` (XFS, or
    ext4 with noauto_da_alloc). (Up to 300 states a model; of more, a sample. The least and the most that the disk may
    hold at each moment are always among them.) Replaying all calls must give the files that are really there, byte for
    byte; else the result is UNKNOWN, as it is if the time does not suffice.

    In each state, in a process of its own, the store must open and load both runs (CORRUPT), load the same again, also
    closed and opened once more (UNSTABLE), and go on saving (WEDGED: a lock or a temporary file is in the way). And if
    the power fails again while it opens, it must open and load once more (RECOVERY; of a few such states, early and
    late ones). What it loads is for P02, after one power loss and after two.

    How the store does under `strict`, where no name is safe but by a sync of its folder, is told as a note.

    Seen in: agno-agi/agno #6089, TencentCloud/TencentDB-Agent-Memory #770 (an empty file is taken for a first run).
    """
    workload, came = await power_losses(subject)
    reports = required(came["models"])
    for report in reports:
        async with subject.scenario(f"the power fails: {MODELS[report['model']].about}") as s:
            expect_none(s, workload, report, OPENS, among=reports)
    subject.notes.append(states_tried(came["models"]))
    subject.notes.append(recoveries_tried(came["models"]))
    subject.notes.append(strictly(came["models"], OPENS))
    expect_enough(reports)
    expect_followed(reports)
