"""C03: SIGKILL at every point inside a call leaves the old state or the new one, whole."""

from __future__ import annotations

import signal
from typing import Any

from ..deeds import (
    DEEDS,
    Prepare,
    expect_whole_and_going_on,
    nothing_tried,
    play_arguments,
    sizes_inside,
    undisturbed_deeds,
)
from ..disturbed import play
from ..durability import require_durable
from ..left_by_a_kill import nothing_is_left_by_a_kill
from ..registry import clause
from ..spread import Points
from ..subject import StoreSubject

_TORN = {"the creation of a run": (0.5,), "a later save": (0.1, 0.5, 0.9), "a large save": (0.01, 0.5, 0.99)}
"""At which part of what a call writes to a file the kernel kills it."""

_OLD_OR_NEW = "the process was killed inside the call, which was not acknowledged: the old state or the new one, whole"
_OTHERS = "it was acknowledged before, and the killed call was about another run"


@clause("C03", level=2, title="SIGKILL inside load_or_create, save or delete leaves old or new, whole")
async def killed_inside(subject: StoreSubject) -> None:
    """A process that is killed inside a call of the store leaves the state before that call, or the one after it.

    Another process does one call, and is killed by SIGKILL before a call that the store makes to the outside in it: an
    open, a write, a sync, a rename, a statement or a commit, a call of a database's library. This is repeated for every
    such call of the creation of a run, on a fresh location and on one in use, of a load, a first, a later and a large
    save, and a delete. (Of more than 150 calls a sample is taken, another one with another seed; with
    N00DLES_PROFILE=deep in the environment it is all of them.) Besides, the kernel kills it in the middle
    of a write, which is then done in part. Then the store is opened here. The run is as it was before the call, or as
    it would have been after it: its outputs and its order belong together. All other runs are as they were. The store
    saves, and what it saves is there when it is opened again.

    A run that is deleted after such a kill is gone, with what the killed call left: a text of the run, which was found
    in the files of the location before, is in none of them once the store is closed (as in S07).

    Each kill proves itself: the process died by signal 9 (by SIGXFSZ in a write), having told where. What C code does
    without a call from Python, as SQLite within one statement, is seen as one call; only the kills in a write fall
    inside it.

    Seen in: mastra-ai/mastra #20225 (a record and those of its parts are written one after the other),
    TencentCloud/TencentDB-Agent-Memory #770 (a truncated file is taken for a first run), NousResearch/hermes-agent
    #80921 (asks for exactly this check: a real SIGKILL, and a resume).
    """
    await require_durable(subject)
    tried = torn = 0
    silent = []
    known = await undisturbed_deeds(subject, DEEDS, after_a_kill=True)
    # The point before the first call is that before the call itself, and was tried with it.
    counts = {title: max(0, len(came["counted"]["kill"]) - 1) for title, came in known.items()}
    points = Points(subject, counts)
    for title, came in known.items():
        prepare, calls = DEEDS[title], came["counted"]["kill"]
        for number in points.of(title):
            where = f"before call {number + 1}, {calls[number]}"
            tried += await _after_a_kill(subject, title, prepare, where, {"by": "kill", "number": number + 1})
        for size in sizes_inside(came["sizes"], _TORN.get(title, ())):
            where = f"in the write that crosses byte {size} of a file"
            torn += await _after_a_kill(subject, title, prepare, where, {"by": "torn", "size": size})
        silent += [] if calls else [title]
    deleted = await nothing_is_left_by_a_kill(subject)
    if not tried + torn and not subject.findings:
        raise nothing_tried(subject, sum(counts.values()), "no process was killed inside a call of the store")
    subject.notes.append(
        f"killed at {tried} of {sum(counts.values())} calls that the store makes, and inside {torn} writes"
    )
    if deleted:
        subject.notes.append(f"after {deleted} of such kills the run was deleted, and looked for in the files")
    if silent:
        subject.notes.append(f"Python tells of no call to the outside in {', '.join(silent)}: killed only before it")


async def _after_a_kill(
    subject: StoreSubject,
    title: str,
    prepare: Prepare,
    where: str,
    disturbance: dict[str, Any],
) -> bool:
    """Whether the process was killed; a store may go another way the second time, and come through."""
    by = signal.SIGKILL if disturbance["by"] == "kill" else signal.SIGXFSZ
    is_killed = False
    async with subject.scenario(f"{title}, killed {where}") as s:
        deed = await prepare(s)
        async with s.elsewhere() as victim:
            text = f"{deed.call['do']}({deed.run_id!r}), to be killed {where}"
            is_killed, came = await victim.perform_and_die(text, play, by=by, **play_arguments(deed, disturbance))
        # A write that crosses the limit is short, and only the next one kills. Who makes no next one may give up.
        is_unknown = is_killed or (by is not signal.SIGKILL and "raised" in came["came"])
        await expect_whole_and_going_on(
            s, deed, deed.found if is_unknown else deed.found[-1:], because=_OLD_OR_NEW, others_because=_OTHERS
        )
    return is_killed
