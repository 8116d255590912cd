"""P03: after a sync has failed, the store does not acknowledge what only the page cache holds."""

from __future__ import annotations

from ...powerloss.faults_found import FaultKind
from ...powerloss.models import MODELS
from ..expect import MisuseError, UnknownOutcomeError
from ..power_safe import expect_enough, expect_none, expect_survived, failed_syncs
from ..registry import clause
from ..subject import StoreSubject


@clause("P03", level=3, title="after a failed sync nothing is acknowledged that only the page cache holds")
async def a_failed_sync_is_final(subject: StoreSubject) -> None:
    """A sync that fails has lost what it was to write; the next one succeeds, and says nothing about that.

    When the disk refuses a page, the kernel tells the program once, by an error of fsync, and takes the page for
    written from then on: the program reads it from memory, and a second fsync returns without an error (Rebello et al.,
    "Can Applications Recover from fsync Failures?", ATC 2020). So a store that tries the sync again until it succeeds
    acknowledges what no disk holds. What is to last has to be written again.

    A run is created, saved and saved again, each call made twice as by a caller who got an error. The first sync of all
    that is made fails with EIO, then the second, and so on until none fails. After each the power fails as in P01 and
    P02; what was pending at the failed sync may be missing, whatever is synced later. All that was acknowledged, then
    or later, must be there, and the store must open and go on. It may refuse what it is asked for after the failed
    sync, or end its process: then nothing is acknowledged.

    Seen in: PostgreSQL until 2018, which now ends its server's life over this ("fsyncgate").
    """
    workload, came = await failed_syncs(subject)
    expect_survived(came["undisturbed"])
    for each in came["failed"]:
        for report in each["models"]:
            async with subject.scenario(f"{each['sync']}, fails with EIO; {MODELS[report['model']].about}") as s:
                expect_none(s, workload, report, tuple(FaultKind), each["told"])
    if not came["failed"] and not came["untried"]:
        raise MisuseError("the store makes no sync that could fail; what it loses is for P02")
    reports = [report for each in came["failed"] for report in each["models"]]
    count = sum(report["tried"] for report in reports)
    subject.notes.append(f"{len(came['failed'])} syncs failed in turn; {count} disk states tried")
    if came["untried"]:
        raise UnknownOutcomeError(f"there was no time for {came['untried']} more syncs; give it more with --limit")
    expect_enough(reports)
