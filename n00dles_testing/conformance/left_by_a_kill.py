"""What a kill inside a call leaves on disk: a delete afterwards removes that, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .buffered import source_of
from .deeds import Deed, play_arguments
from .disturbed import play
from .moments import Calls, Moment, calls_of, kills
from .raw_files import expect_in_no_file, files_with
from .records import Record
from .scenario import Scenario
from .spread import Points
from .subject import StoreSubject
from .tally import Tally
from .traced import trace_steps

__all__ = ["DELETED_AFTER_A_KILL", "nothing_is_left_by_a_kill"]

DELETED_AFTER_A_KILL = "a delete after a kill"
"""What this is called among the deeds that are tallied."""
_MOST = 40
"""So many kills are tried, if nobody asks for another number."""
_CALLS = ("save", "delete")
"""That one process deletes what another has saved is shown by the first, and needed for the second."""

_NOTHING = "a deleted run must leave nothing behind, and neither must a call that was killed before"


@dataclass(slots=True)
class _Done:
    """How many processes were killed, and how many of them left the text of the run in a file."""

    kills: int = 0
    with_text: int = 0


async def nothing_is_left_by_a_kill(subject: StoreSubject) -> None:
    """Kill inside a save, or a delete, of a run with a text that is found again; then delete it, and look for that.

    It is killed where a kill leaves another state, as the rest of the clause does. Of writes to one file, one after the
    other, the end is enough: a text that is in the file before is there then. Notes and a tally say how often; what was
    never found on disk after a kill is not said to be gone. What a store leaves of a deleted run without a kill, and
    one whose files do not hold texts as they are, is for S07.
    """
    if not subject.has_folders:
        return
    calls: dict[str, Calls] = {}
    for name in _CALLS:
        came = await _calls_of(subject, name)
        if came is None:
            break
        calls[name] = came
    if not calls:
        return
    moments = {name: _ends_of_writes(subject, each) for name, each in calls.items()}
    points = Points(subject, {name: len(found) for name, found in moments.items()}, subject.most or _MOST)
    done, before = _Done(), len(subject.findings)
    for name, found in moments.items():
        for number in points.of(name):
            await _killed_and_deleted(subject, name, found[number - 1], done)
    _say(subject, done, calls, sum(map(len, moments.values())), len(subject.findings) - before)


def _say(subject: StoreSubject, done: _Done, calls: dict[str, Calls], moments: int, faults: int) -> None:
    counts = [each.count for each in calls.values() if each.count is not None]
    tried = done.kills if done.with_text or faults else 0
    subject.on_tally(Tally("C03", DELETED_AFTER_A_KILL, sum(counts) if counts else None, moments, tried, faults))
    if done.with_text:
        subject.notes.append(
            f"after {done.kills} more kills the run was deleted, and looked for in the files: its text had been there "
            f"after {done.with_text} of them"
        )
    elif moments:
        subject.notes.append("not shown: a delete after a kill, since no kill that was tried left a text in the files")


def _ends_of_writes(subject: StoreSubject, calls: Calls) -> list[Moment]:
    """Return where it is killed: not between two system calls that write to one file, one after the other."""
    changing = list(calls.traced or ())
    return [
        moment
        for moment in kills(calls, source_of(subject))
        if not moment.traced or not _is_between_writes(changing, moment.disturbance["number"])
    ]


def _is_between_writes(calls: Sequence[dict[str, str]], number: int) -> bool:
    before, after = calls[number - 2], calls[number - 1]
    return before["kind"] == after["kind"] == "write" and before["path"] == after["path"]


async def _calls_of(subject: StoreSubject, name: str) -> Calls | None:
    """Return the calls; None if something of the run is left without a kill, or is never found."""
    async with subject.probe(f"what is left of a run after a {name}, without a kill") as s:
        deed, token = _deed(s, name)
        async with s.elsewhere() as other:
            came = await other.perform(play, **play_arguments(deed, {"by": "count"}))
        is_found = name == "delete" or bool(files_with(str(s.location), token))
        if not is_found or await _left(s, deed, token):
            return None

        async def prepare(s: Scenario) -> Deed:
            return _deed(s, name)[0]

        return await calls_of(subject, deed.title, prepare, came["counted"])
    return None


async def _killed_and_deleted(subject: StoreSubject, name: str, moment: Moment, done: _Done) -> None:
    async with subject.scenario(f"a run is deleted after a {name} of it was killed {moment.where}") as s:
        deed, token = _deed(s, name)
        text = f"{name}({deed.run_id!r}), to be killed {moment.where}"
        arguments = play_arguments(deed, moment.disturbance)
        if moment.traced:
            async with s.elsewhere(tracing=True) as tracer:
                came = (await tracer.perform(trace_steps, text, **arguments))["came"]
            is_killed = bool(came.get("killed"))
        else:
            async with s.elsewhere() as victim:
                is_killed, _ = await victim.perform_and_die(text, play, **arguments)
        found = files_with(str(s.location), token)
        s.tell(f"the run's text is then in {', '.join(found) or 'no file'}")
        done.kills += is_killed
        done.with_text += is_killed and bool(found)

        expect_in_no_file(s.expect(await _left(s, deed, token)), because=_NOTHING)


async def _left(s: Scenario, deed: Deed, token: str) -> list[str]:
    """Open the store, delete the run, and close it; return the files that still hold the text."""
    await s.delete(deed.run_id)
    await s.close()
    return files_with(str(s.location), token)


def _deed(s: Scenario, name: str) -> tuple[Deed, str]:
    """Return a call on a run, and the text that is in what it saves, or has saved."""
    token = "".join(s.subject.draw.token() for _ in range(4))
    run_id, inputs = s.subject.fresh_run_id(), {"topic": "cats"}
    create = {"do": "load_or_create", "run": run_id, "inputs": inputs}
    save: dict[str, Any] = {"do": "save", "run": run_id, "outputs": {"researcher": {"facts": [f"fact {token}"]}}}
    before, call = ([create], save) if name == "save" else ([create, save], {"do": "delete", "run": run_id})
    return Deed(f"a {name}", run_id, before, call, (Record.new(inputs),)), token
