"""C03: SIGKILL at every point inside a call leaves the old state or the new one, whole."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Any

from ..buffered import source_of
from ..deeds import (
    DEEDS,
    expect_whole_and_going_on,
    nothing_tried,
    play_arguments,
    sizes_inside,
    undisturbed_deeds,
)
from ..disturbed import play
from ..durability import require_durable
from ..expect import VacuousCheck
from ..left_by_a_kill import nothing_is_left_by_a_kill
from ..moments import Calls, Moment, calls_of_deeds, kills
from ..registry import clause
from ..spread import MOST, Points
from ..subject import StoreSubject
from ..tally import Tally
from ..trace_fixes import IN_ONE_STEP, fixed_by
from ..traced import trace_steps

_TORN = {"the creation of a run": (0.5,), "a later save": (0.1, 0.5, 0.9), "a large save": (0.01, 0.5, 0.99)}
"""At which part of what a call writes to a file the kernel kills it."""

_OLD_OR_NEW = "the process was killed inside the call, which was not acknowledged: the old state or the new one, whole"
_OTHERS = "it was acknowledged before, and the killed call was about another run"


@clause("C03", level=2, title="SIGKILL inside load_or_create, save or delete leaves old or new, whole")
async def killed_inside(subject: StoreSubject) -> None:
    """A process that is killed inside a call of the store leaves the state before that call, or the one after it.

    Another process does one call, and is killed by SIGKILL before a system call on a file of the location: an open, a
    write, a change of a size, a rename, a removal. These are traced from outside the process, so it does not matter who
    makes them, Python or a C library, as SQLite does many within one statement. It is repeated for each of them, in the
    creation of a run, on a fresh location and on one in use, in a load, a first, a later and a large save, and a
    delete. Two kills that no change lies between are alike, since the kernel keeps what was written; one of them is
    tried. (Of more than 150 moments a sample is taken, another one with another seed; with N00DLES_PROFILE=deep in the
    environment it is all of them.) Besides, the kernel kills it in the middle of a write, which is then done in part.
    Then the store is opened here. The run is as it was before the call, or as it would have been after it: its outputs
    and its order belong together. All other runs are as they were. The store saves, and what it saves is there when it
    is opened again.

    A run that is deleted after such a kill is gone, with what the killed call left: a text of the run, which was found
    in the files of the location before, is in none of them once the store is closed (as in S07). Of writes to one file,
    one after the other, the end is tried. (Of more than 40 such moments a sample is taken.)

    Each kill proves itself: the process died by signal 9 (by SIGXFSZ in a write), and it is known where. A call of the
    store in which none of them happened leaves the clause VACUOUS. Where nothing can be traced, which the reason says,
    and where Python tells of calls that lead elsewhere than to a file (to a server, or into a library that keeps its
    data in shared memory), it is killed before each call that Python tells of: a write, a statement, a commit, a call
    of the library.

    Seen in: mastra-ai/mastra #20225 (a record and those of its parts are written one after the other),
    TencentCloud/TencentDB-Agent-Memory #770 (a truncated file is taken for a first run), NousResearch/hermes-agent
    #80921 (asks for exactly this check: a real SIGKILL, and a resume).
    """
    await require_durable(subject)
    done = _Done()
    known = await undisturbed_deeds(subject, DEEDS, after_a_kill=True)
    calls = await calls_of_deeds(subject, known)
    moments = {title: kills(calls[title], source_of(subject)) for title in known}
    points = Points(subject, {title: len(found) for title, found in moments.items()}, subject.most or MOST)
    alive: list[str] = []
    for title, came in known.items():
        before, found = done.kills + done.torn, len(subject.findings)
        for number in points.of(title):
            moment = moments[title][number - 1]
            died = await _after_a_kill(subject, title, moment.where, moment.disturbance, traced=moment.traced)
            done.traced += died and moment.traced
            done.told += died and not moment.traced
        sizes = sizes_inside(came["sizes"], _TORN.get(title, ()))
        for size in sizes:
            where = f"in the write that crosses byte {size} of a file"
            done.torn += await _after_a_kill(subject, title, where, {"by": "torn", "size": size})
        tried, found = done.kills + done.torn - before, len(subject.findings) - found
        alive += [title] if moments[title] and not (tried or found) else []
        subject.on_tally(Tally("C03", title, calls[title].count, len(moments[title]) + len(sizes), tried, found))
    counted = sum(map(len, moments.values()))
    if not done.kills + done.torn and not subject.findings:
        raise nothing_tried(subject, counted, "no process was killed inside a call of the store", are_traced=True)
    _say(subject, done, calls, moments)
    await nothing_is_left_by_a_kill(subject)
    if alive:
        raise VacuousCheck(
            f"the process that called the store was not killed inside {', '.join(alive)}, so nothing was shown of "
            "that. Another process may make the system calls there: kill that one in a test of your own"
        )


@dataclass(slots=True)
class _Done:
    """How many processes were killed before a system call, before a call that Python tells of, and inside a write."""

    traced: int = 0
    told: int = 0
    torn: int = 0

    @property
    def kills(self) -> int:
        return self.traced + self.told


def _say(subject: StoreSubject, done: _Done, calls: dict[str, Calls], moments: dict[str, list[Moment]]) -> None:
    """Note how many kills stand behind the verdict."""
    every = [moment for found in moments.values() for moment in found]
    traced = sum(moment.traced for moment in every)
    said = []
    if traced:
        said.append(f"at {done.traced} of {traced} system calls on its files")
    if len(every) > traced or not traced:
        said.append(f"at {done.told} of {len(every) - traced} calls that Python tells of")
    subject.notes.append(f"killed {', '.join(said)}, and inside {done.torn} writes")
    if silent := [title for title, each in calls.items() if not (each.traced or each.told["kill"])]:
        subject.notes.append(f"no call to the outside is known of in {', '.join(silent)}: killed only before it")


async def _after_a_kill(
    subject: StoreSubject, title: str, where: str, disturbance: dict[str, Any], *, traced: bool = False
) -> bool:
    """Whether the process was killed; a store may go another way the second time, and come through."""
    is_killed = False
    async with subject.scenario(f"{title}, killed {where}") as s:
        deed = await DEEDS[title](s)
        text = f"{deed.call['do']}({deed.run_id!r}), to be killed {where}"
        arguments = play_arguments(deed, disturbance)
        if traced:
            async with s.elsewhere(tracing=True) as tracer:
                came = (await tracer.perform(trace_steps, text, **arguments))["came"]
            # A process that the store talks to is traced, too: with that one killed, the call may fail.
            is_killed = bool(came.get("killed"))
            is_unknown = is_killed or "raised" in came
        else:
            by = signal.SIGKILL if disturbance["by"] == "kill" else signal.SIGXFSZ
            async with s.elsewhere() as victim:
                is_killed, came = await victim.perform_and_die(text, play, by=by, **arguments)
            # A write that crosses the limit is short, and only the next one kills. Who makes none was not killed, and
            # what becomes of a short write is for C04.
            if by is not signal.SIGKILL and not is_killed:
                return False
            is_unknown = is_killed
        with fixed_by(IN_ONE_STEP):
            await expect_whole_and_going_on(
                s, deed, deed.found if is_unknown else deed.found[-1:], because=_OLD_OR_NEW, others_because=_OTHERS
            )
    return is_killed
