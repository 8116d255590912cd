"""P01: whatever the disk may hold after a power loss, the store opens on it, loads, and goes on."""

from __future__ import annotations

from ...powerloss.faults_found import FaultKind
from ...powerloss.models import MODELS
from ..power_safe import REQUIRED, expect_none, power_losses, states_tried, strictly
from ..registry import clause
from ..subject import StoreSubject

_KINDS = (FaultKind.CORRUPT, FaultKind.UNSTABLE, FaultKind.RECOVERY, FaultKind.WEDGED)


@clause("P01", level=3, title="whatever the disk holds after a power loss, the store opens, loads and goes on")
async def opens_after_a_power_loss(subject: StoreSubject) -> None:
    """A power cut leaves no store that cannot be opened, whatever of the unsynced writes has reached the disk.

    When a process is killed, all that it wrote is there. When the power fails, only what was synced is sure to be: of
    the rest any part may be there, in an order that the file system chooses; a rename may be there without the bytes of
    the file that it names. So the store's calls are traced, all its system calls recorded: two runs are created, saved
    (once large, so that a write has parts), closed, opened again, saved, and one deleted. From the recording every
    state is made that the disk may hold if the power fails at any moment, under three models: `kill` (the writes up to
    some point), `ext4` as it is mounted by default, and `journaled` (XFS, or ext4 with noauto_da_alloc). (Up to 300
    states a model; of more, a sample.) Replaying all calls must give the files that are really there, byte for byte;
    else the result is UNKNOWN.

    In each state, in a process of its own, the store must open and load both runs (CORRUPT), load the same again, also
    closed and opened once more (UNSTABLE), and save them on (WEDGED: a lock or a temporary file is in the way). And if
    the power fails again while it does that, the same must hold (RECOVERY). What it loads is for P02.

    How the store does under `strict`, where no name is safe but by a sync of its folder, is told as a note.

    Seen in: agno-agi/agno #6089, TencentCloud/TencentDB-Agent-Memory #770 (an empty file is taken for a first run).
    """
    workload, came = await power_losses(subject)
    for report in came["models"]:
        if report["model"] in REQUIRED:
            async with subject.scenario(f"the power fails: {MODELS[report['model']].about}") as s:
                expect_none(s, workload, report, _KINDS)
    subject.notes.append(states_tried(came["models"]))
    subject.notes.append(strictly(came["models"], _KINDS))
