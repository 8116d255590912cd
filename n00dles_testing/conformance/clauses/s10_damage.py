"""S10: a damaged record is an error, and stays as it is."""

from __future__ import annotations

from pathlib import Path

from ..damage import Damage, cuts, flip_in_the_middle, flips, holds, versions
from ..damaged_runs import ERROR, OTHER_INPUTS, WHY, Came, expect_it_stays, fault_of, is_first, is_older, load
from ..durability import keeps_nothing, lies_with_a_server
from ..elsewhere import Elsewhere
from ..expect import MisuseError, NotApplicableError, VacuousCheck
from ..registry import clause
from ..scenario import Scenario
from ..sqlite_damage import database_damage, database_versions, is_database, page_size
from ..stored_runs import StoredRun, StoredRuns, store_two_runs
from ..subject import StoreSubject


@clause("S10", level=1, title="a damaged record is an error, and stays as it is")
async def damage_is_an_error(subject: StoreSubject) -> None:
    """A damaged record raises an error; it is never taken for a first run, and not overwritten by a following one.

    The suite saves two runs, closes the store, looks which files hold the first one (by texts that it put there, or by
    what has changed), and lays damaged copies under fresh instances in other processes. Tried are: a file that is
    emptied, cut to 10 bytes, to half, in the middle of the last output, and before its last byte; a bit that is flipped
    in a text, and in the bytes around it; in a SQLite database also a text that is cut or emptied in its row, and a
    page of zeros; the number of a later version, where one is found; and the file of one run in the place of
    another's. Then the run is loaded, with other inputs than its own.

    Allowed is an error, of any class (one that names neither the run nor its file is noted), or exactly the run as it
    was acknowledged: then the damage did no harm. Where an error came, the run is loaded once more, as a following run
    does, which saves only what a load has given: the error stays, and so do the damaged bytes. A run whose own files
    are whole comes as it was, or an error does, which is noted. What is not allowed: a first run, a state that was
    never saved, an older state (unless a file was cut), a node or an input that is missing or of another type.

    What no store can see is noted, and no fault. A bit that is flipped inside a text leaves a valid text: only a
    checksum shows it. A file that ends early, as a log does that was torn by a power cut, may give an older state,
    whole; and if it is the file of many runs, and nothing of the run is left in it, a first run. So may an empty
    database: its library takes it for a new one. A file of one run alone has no such excuse: write it aside, and rename
    it into place.

    Seen in: TencentCloud/TencentDB-Agent-Memory #770 (an unreadable record is read as a first run, and the next save
    overwrites it), leinasi2014/dsh-rlm #63 (likewise).
    """
    runs = await _stored(subject)
    seen = _Seen()
    for damage in _all_damage(runs):
        await _try(subject, runs, damage, runs.first, seen)
    for damage in _foreign(runs):
        await _try(subject, runs, damage, runs.second, seen)
    if not seen.effects and not subject.findings:
        raise VacuousCheck(
            f"{seen.tried} kinds of damage to {', '.join(runs.files)} had no effect at all, so the record lies "
            "elsewhere, and nothing was shown"
        )
    subject.notes += seen.notes()
    if not runs.is_readable and not runs.own:
        subject.notes.append("not tried: flipped bits: the texts of a run are not in the files as they are")


class _Seen:
    """What has come of all the damage, besides faults: told at the end, a line each kind."""

    def __init__(self) -> None:
        self.tried = 0
        self.effects = 0
        self._kinds: set[str] = set()
        self._noted: dict[str, list[str]] = {}

    def count(self, damage: Damage, *, has_effect: bool) -> None:
        self.tried += 1
        self.effects += has_effect
        self._kinds.add(damage.kind)

    def note(self, what: str, damage: Damage) -> None:
        self._noted.setdefault(what, []).append(f"{damage.file} {damage.title}")

    def notes(self) -> list[str]:
        found = [f"{what} ({of[0]}{f' and {len(of) - 1} more' if of[1:] else ''})" for what, of in self._noted.items()]
        for kind, why in (
            ("version", "a record of a later version: no number of a version was found"),
            ("foreign", "the file of another run: runs have no files of their own"),
        ):
            if kind not in self._kinds:
                found.append(f"not tried: {why}")
        return found


async def _stored(subject: StoreSubject) -> StoredRuns:
    """Return two runs on disk, a copy of which another process reads."""
    if subject.has_folders:
        # A store that loses its runs when it is closed, which C01 tells, may still have them after a kill.
        for close in (True, False):
            async with subject.probe("two runs are saved, and a copy of them is loaded") as s:
                runs = await store_two_runs(s, close=close)
                if runs.files and await _is_whole(subject, runs):
                    return runs
    if await keeps_nothing(subject):
        raise NotApplicableError(
            "the store has no record that could be damaged: a run saved in another process is not found in this "
            "one, and that process opened no file for writing, no database and no connection"
        )
    if (why := await lies_with_a_server(subject)) is not None:
        raise NotApplicableError(f"{why}: damage of its disk is the server's to find")
    if not subject.target.takes_location:
        raise MisuseError(
            "where the store keeps its records is not known: the factory takes no location. Give it one argument, a "
            "folder as a string"
        )
    raise MisuseError(
        "no file of the location was found that another process reads a run from: it is kept elsewhere, or lost (C01)"
    )


async def _is_whole(subject: StoreSubject, runs: StoredRuns) -> bool:
    async with subject.probe("a copy without damage is loaded") as s, s.elsewhere() as other:
        runs.copy_to(s.location, {})
        came = [await load(s, other, run, run.record.inputs) for run in (runs.first, runs.second)]
        return came[0].is_exactly(runs.first) and came[1].is_exactly(runs.second)
    return False


def _all_damage(runs: StoredRuns) -> list[Damage]:
    found: list[Damage] = []
    first, *_, last = runs.first.tokens
    for file in runs.files:
        content = runs.content[file]
        if is_database(content):
            found += cuts(file, content, last, page=page_size(content))
            found += database_damage(file, content, runs.first.tokens)
        else:
            found += cuts(file, content, last)
        found += flips(file, content, first, last)
        if not runs.is_readable and file in runs.own:
            found += flip_in_the_middle(file, content)
    for file, content in runs.content.items():
        if file not in runs.of_second:
            found += database_versions(file, content) if is_database(content) else versions(file, content)
    return found


def _foreign(runs: StoredRuns) -> list[Damage]:
    """Return the last file of the first run in the place of each of the second one's."""
    last = runs.first.tokens[-1]
    sources = [file for file in sorted(runs.own) if not runs.is_readable or holds(runs.content[file], last)]
    return [
        Damage(f"is that of another run ({source})", "foreign", file, runs.content[source])
        for source in sources[-1:]
        for file in runs.of_second
    ]


async def _try(subject: StoreSubject, runs: StoredRuns, damage: Damage, run: StoredRun, seen: _Seen) -> None:
    async with subject.scenario(f"{damage.file} {damage.title}") as s, s.elsewhere() as other:
        runs.copy_to(s.location, {damage.file: damage.content})
        s.tell(f"acknowledged before: {run.record}")
        s.tell(f"{damage.file} had {len(runs.content[damage.file])} bytes; damaged, it has {len(damage.content)}")
        came = await load(s, other, run, OTHER_INPUTS)
        seen.count(damage, has_effect=not came.is_exactly(run))
        s.expect(str(came)).has_no(fault_of(came, damage, run, runs), allowed=ERROR, because=WHY)
        if (what := _worth_a_note(came, damage, run, s.location)) is not None:
            seen.note(what, damage)
        if came.error:
            await expect_it_stays(s, other, runs, damage, run)
        if damage.file in runs.own and damage.kind != "foreign":
            await _others_are_untouched(s, other, runs, damage, seen)


async def _others_are_untouched(s: Scenario, other: Elsewhere, runs: StoredRuns, damage: Damage, seen: _Seen) -> None:
    """Load the run that lies in other files: that one is damaged may keep it from being loaded, and changes nothing."""
    came = await load(s, other, runs.second, runs.second.record.inputs)
    if came.error:
        seen.note("keeps other runs from being loaded, whose files are whole", damage)
        return
    fault = None if came.is_exactly(runs.second) else "a run whose files are whole came as something else"
    s.expect(str(came)).has_no(
        fault, allowed=str(runs.second.record), because="only the file of another run is damaged"
    )


def _worth_a_note(came: Came, damage: Damage, run: StoredRun, location: str | None) -> str | None:
    """Say what the user of a store that breaks nothing may want to know."""
    if came.is_exactly(run):
        return "read all the same, if this is the version of the record" if damage.kind == "version" else None
    if came.has_died:
        return "the process died: a memory map ends before it should, and no error can be raised"
    if came.error:
        names = (run.run_id, Path(damage.file).name, str(location))
        return None if any(name in came.says for name in names) else "an error names neither the run nor its file"
    if is_first(came):
        return "taken for new, since nothing of the run is left in it"
    if is_older(came, run):
        return "gives an older state, as after a power cut"
    return "not noticed: only a checksum shows it"
