"""Leases of the runs in a SQLite database: who holds what, in this process and in others."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakValueDictionary

from ..errors import StateStoreError
from .lease_lines import LeaseLines, OthersTurnError, is_usable
from .leases import Lease, LeaseTable, lost_error, new_lease, renewed, run_locked_error

__all__ = ["LeaseFile", "lease_file", "wait_for_turn"]

T = TypeVar("T")

_PAUSE = 0.001  # seconds


@dataclass(slots=True)
class _Held:
    """A lease of this process, and the line that says so. `expires` is a time of the monotonic clock."""

    lease: Lease
    expires: float
    line: int


class LeaseFile:
    """The leases of the SQLite database at `database`, as this process sees and holds them.

    No method waits for another process: it raises `OthersTurnError` instead, and nothing was done. `wait_for_turn`
    waits.
    """

    def __init__(self, database: str) -> None:
        self.database = database
        self._lines = LeaseLines(f"{database}-leases", database, self._write_again)
        self._lock = threading.Lock()
        self._held: dict[str, _Held] = {}

    def acquire(self, run_id: str, holder: str, ttl: float) -> Lease:
        """Return a new lease. Raises `RunLockedError` if another one holds the run."""
        with self._lock:
            mine = self._held.get(run_id)
            if mine is not None and time.monotonic() < mine.expires:
                raise run_locked_error(mine.lease, " (this process)")
            with self._lines:
                line = self._line_for(run_id, mine)
                lease = new_lease(run_id, holder, ttl)
                self._hold(lease, ttl, line)
            return lease

    def renew(self, lease: Lease, ttl: float) -> Lease:
        """Return the lease, to last `ttl` seconds from now. Raises `RunLockedError` if it is held no longer."""
        with self._lock:
            mine = self._held.get(lease.run_id)
            if mine is None or mine.lease.token != lease.token:
                raise lost_error(lease, mine.lease if mine else None)
            with self._lines:
                written = self._lines.find(lease.run_id)
                if not any(found.line == mine.line and found.lease.token == lease.token for found in written):
                    self._drop(mine)
                    raise lost_error(lease, next((f.lease for f in written if f.lease.since >= lease.since), None))
                lease = renewed(lease, ttl)
                self._lines.lock_again(mine.line)
                self._hold(lease, ttl, mine.line)
            return lease

    def release(self, lease: Lease) -> None:
        """Free the run, if this lease still holds it. Never raises `OthersTurnError`."""
        with self._lock:
            mine = self._held.get(lease.run_id)
            if mine is not None and mine.lease.token == lease.token:
                self._drop(mine)

    def end(self, run_id: str) -> None:
        """Free a run that was deleted, whoever holds it."""
        with self._lock:
            mine = self._held.get(run_id)
            if mine is not None:
                self._drop(mine)
            if is_usable(self._lines.path):
                with self._lines:
                    for written in self._lines.find(run_id):
                        self._lines.blank(written.line)

    def held(self, run_ids: Collection[str]) -> list[Lease]:
        """Return the leases that are held now of any of these runs.

        To ask whether a worker of another process lives needs a lock, so only who may write the file is told of those.
        """
        with self._lock:
            if not is_usable(self._lines.path):
                return [self._held[run_id].lease for run_id in run_ids if run_id in self._held]
            with self._lines:
                written, now = self._lines.find(*run_ids), time.monotonic()
                return [found.lease for found in written if now < found.expires and self._lines.is_held(found.line)]

    def remove(self) -> None:
        """Remove the file, unless somebody holds a lease; the next lease makes it again."""
        with self._lock:
            if not self._held and is_usable(self._lines.path):
                with self._lines:
                    self._lines.remove()

    def forget(self) -> None:
        """Start anew in a forked child, which has none of its parent's locks."""
        self._lock = threading.Lock()
        self._held.clear()
        self._lines.close()

    def _write_again(self) -> None:
        """Write the leases of this process into a new file, after somebody has removed the one in which they were."""
        for run_id, mine in list(self._held.items()):
            if any(self._lines.is_held(found.line) for found in self._lines.find(run_id)):
                del self._held[run_id]
            else:
                mine.line = self._lines.claim()
                self._lines.write(mine.line, mine.lease, mine.expires)

    def _line_for(self, run_id: str, mine: _Held | None) -> int:
        """Return a line of this process for the run. Raises `RunLockedError` if another process holds it."""
        for found in self._lines.find(run_id):
            if (mine is None or found.line != mine.line) and self._lines.is_held(found.line):
                if time.monotonic() < found.expires:
                    raise run_locked_error(found.lease)
                self._lines.blank(found.line)
        # The line of an expired lease of ours is still locked, also if another process has taken the run meanwhile.
        return self._lines.claim() if mine is None else mine.line

    def _hold(self, lease: Lease, ttl: float, line: int) -> None:
        expires = time.monotonic() + ttl
        try:
            self._lines.write(line, lease, expires)
        except BaseException:
            if lease.run_id not in self._held:
                self._lines.leave(line)
            raise
        self._held[lease.run_id] = _Held(lease, expires, line)

    def _drop(self, mine: _Held) -> None:
        del self._held[mine.lease.run_id]
        self._lines.leave(mine.line)


class _ProcessLeases(LeaseTable):
    """Leases where the system has no locks for us (Windows): between processes, only the revision fences."""

    def remove(self) -> None:
        """There is no file."""


class _Files:
    """What `lease_file` gives: one object for each file, as long as a store refers to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: WeakValueDictionary[str, LeaseFile | _ProcessLeases] = WeakValueDictionary()

    def of(self, path: str) -> LeaseFile | _ProcessLeases:
        with self._lock:
            found = self._known.get(path)
            if found is None:
                found = self._known[path] = LeaseFile(path) if os.name == "posix" else _ProcessLeases()
            return found

    def forget(self) -> None:
        self._lock = threading.Lock()
        for file in list(self._known.values()):
            if isinstance(file, LeaseFile):
                file.forget()


_files = _Files()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_files.forget)


def lease_file(database: str) -> LeaseFile | _ProcessLeases:
    """Return the one object that stands for the leases of the SQLite file `database` in this process."""
    return _files.of(os.path.realpath(database))


def wait_for_turn(work: Callable[[], T], seconds: float) -> T:
    """Return what `work` returns as soon as no other process is at the file, at most `seconds` from now.

    Raises `StateStoreError` after that: a process that was stopped at that very moment keeps everybody out.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return work()
        except OthersTurnError:
            if time.monotonic() > deadline:
                raise StateStoreError(
                    f"another process has been at the file of leases for more than {seconds:g} s. It was stopped at "
                    "that very moment, as it seems: continue it (kill -CONT), or end it."
                ) from None
        time.sleep(_PAUSE)
