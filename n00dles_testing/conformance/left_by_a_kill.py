"""What a kill inside a call leaves on disk: a delete afterwards removes that, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .deeds import Deed, play_arguments
from .disturbed import play
from .raw_files import files_with
from .records import Record
from .scenario import Scenario
from .spread import spread
from .subject import StoreSubject

__all__ = ["nothing_is_left_by_a_kill"]

_MOST = 8
"""So many kills of each call are tried, spread evenly; the clause tries all of them for what is loaded."""
_CALLS = ("save", "delete")
"""That one process deletes what another has saved is shown by the first, and needed for the second."""


async def nothing_is_left_by_a_kill(subject: StoreSubject) -> int:
    """Kill inside a save, or a delete, of a run with a text that is found again; then delete it, and look for that.

    Returns how often. What a store leaves of a deleted run without a kill, and one whose files do not hold texts as
    they are, is for S07.
    """
    tried = 0
    if not subject.target.takes_location:
        return tried
    for name in _CALLS:
        calls = await _calls_of(subject, name)
        if not calls:
            break
        for number in spread(len(calls), _MOST):
            tried += await _killed_and_deleted(subject, name, number, calls[number - 1])
    return tried


async def _calls_of(subject: StoreSubject, name: str) -> Sequence[str]:
    """Return the calls to the outside; none, if something of the run is left without a kill, or is never found."""
    async with subject.probe(f"what is left of a run after a {name}, without a kill") as s:
        deed, token = _deed(s, name)
        async with s.elsewhere() as other:
            came = await other.perform(play, **play_arguments(deed, {"by": "count"}))
            calls: list[str] = came["counted"]["kill"]
        is_found = name == "delete" or bool(files_with(str(s.location), token))
        if is_found and not await _left(s, deed, token):
            return calls
    return ()


async def _killed_and_deleted(subject: StoreSubject, name: str, number: int, where: str) -> bool:
    is_killed = False
    async with subject.scenario(f"a run is deleted after a {name} of it was killed before call {number}, {where}") as s:
        deed, token = _deed(s, name)
        async with s.elsewhere() as victim:
            text = f"{name}({deed.run_id!r}), to be killed before call {number}, {where}"
            arguments = play_arguments(deed, {"by": "kill", "number": number})
            is_killed, _ = await victim.perform_and_die(text, play, **arguments)
        s.tell(f"the run's text is then in {', '.join(files_with(str(s.location), token)) or 'no file'}")

        s.expect(await _left(s, deed, token)).equals(
            [], what="the files that hold the run's text", because="the run was deleted, and the store closed"
        )
    return is_killed


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
