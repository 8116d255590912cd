"""Whether a store keeps anything beyond the instance: probed, so that NOT APPLICABLE is proven and never declared."""

from __future__ import annotations

import os
from pathlib import Path

from .expect import MisuseError, NotApplicableError
from .scenario import Scenario
from .subject import StoreSubject

__all__ = ["keeps_nothing", "keeps_runs", "lies_with_a_server", "require_durable", "talks_to"]

_INPUTS = {"probe": "first"}
_ANOTHER_PROCESS = ("address ", "a process of its own ")
_WHAT_IS_NOT_DONE = {
    "C03": "that one was not killed, only its client",
    "C04": "faults were put into its client only",
    "C06": "that one was not killed, only its client",
}
"""What a PASS of a clause does not say of a store whose work another process does."""
_OTHER_INPUTS = {"probe": "second"}


async def require_durable(subject: StoreSubject) -> None:
    """Return if the store keeps runs, or at least tries to, so that its crash clauses can be checked.

    Another process saves a run while it is watched; then this one looks for it. That it has talked to a third process
    there is noted by the clauses that kill or disturb it. Raises `NotApplicableError` if this one
    finds nothing *and* the other touched nothing outside its memory: no file, database, connection, process, and
    nothing in the location. A store that writes and whose data is not found goes on to its checks, and fails them.
    Raises `MisuseError` if that cannot be told from a factory that opens somewhere else each time, or if this system
    does not show what a C library opens.
    """
    found, touched, is_proof = await subject.once("durability", lambda: _probe(subject))
    beyond = [what for what in touched if what.startswith(_ANOTHER_PROCESS)]
    if beyond and subject.clause in _WHAT_IS_NOT_DONE:
        subject.notes.append(f"the store talks to another process ({beyond[0]}): {_WHAT_IS_NOT_DONE[subject.clause]}")
    if found:
        return
    if not touched and not is_proof:
        raise MisuseError(
            "a run saved in another process is not found in this one, and whether the store tries to keep it cannot be "
            "seen on this system: there is no /proc/self/fd. Run the check on Linux"
        )
    if not touched:
        raise NotApplicableError(
            "the store keeps nothing beyond its process, and does not try to: a run saved in another process is not "
            "found in this one, and that process opened no file for writing, no database and no "
            "connection, by Python or by a C library"
        )
    if not subject.target.takes_location:
        raise MisuseError(
            "each call of the factory seems to open another place: a run saved in one process is not found in the "
            f"next, though {touched[0]} was opened. Give the factory one argument, the location, a folder as a string"
        )


async def keeps_nothing(subject: StoreSubject) -> bool:
    """Whether the same probe has proven that the store keeps nothing beyond its process."""
    found, touched, is_proof = await subject.once("durability", lambda: _probe(subject))
    return is_proof and not found and not touched


async def keeps_runs(subject: StoreSubject) -> bool:
    """Whether the same probe has found, in this process, the run that another one has saved and closed."""
    found, _, _ = await subject.once("durability", lambda: _probe(subject))
    return found


async def lies_with_a_server(subject: StoreSubject) -> str | None:
    """Say in a sentence that the store keeps its runs with a server, and has no file of its own; None if it has not.

    The same probe proves it: a process that saved a run, which this one finds, had connections, and wrote no file.
    """
    found, touched, is_proof = await subject.once("durability", lambda: _probe(subject))
    addresses = [what for what in touched if what.startswith("address ")]
    if not (found and is_proof and addresses) or len(addresses) != len(touched):
        return None
    return f"the runs lie with a server ({addresses[0]}), and the process that saved one wrote no file"


async def talks_to(subject: StoreSubject) -> list[str] | None:
    """Return which other processes a process of the same probe talked to; None if that cannot be seen here."""
    _, touched, is_proof = await subject.once("durability", lambda: _probe(subject))
    found = [what for what in touched if what.startswith(_ANOTHER_PROCESS)]
    return found if found or is_proof else None


async def _probe(subject: StoreSubject) -> tuple[bool, list[str], bool]:
    async with subject.probe("is anything kept beyond the process?") as s, s.elsewhere() as other:
        await other.watch()
        run_id = await other.create(_INPUTS)
        await other.save(run_id, {"probe": "kept"})
        await other.close()
        touched, is_proof = await other.touched()
        touched = [what.replace(f"{s.location}{os.sep}", "") for what in touched]
        return await _finds(s, run_id), [*touched, *_files_in(s)], is_proof
    # The probe met a fault: whatever it was, the store does try.
    return True, [], False


async def _finds(s: Scenario, run_id: str) -> bool:
    handle = await s.load(run_id, _OTHER_INPUTS)
    return handle.record.inputs == _INPUTS or "probe" in handle.record.completed


def _files_in(s: Scenario) -> list[str]:
    if s.folder is None:
        return []
    return [f"file {os.fspath(path)}" for path in Path(s.folder).rglob("*")]
