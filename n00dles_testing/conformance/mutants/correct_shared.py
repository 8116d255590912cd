"""A correct store for many workers: files with revisions, leases, and retention.

A lease is a file beside the run's. It counts as long as it has not expired, by the clock that does not step, and its
holder lives: who holds one has a lock of the operating system on another file, which goes with the process.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from .correct import FilesWithRevisions, record_of

__all__ = ["HeldError", "SharedFiles"]


class HeldError(Exception):
    """Another worker holds the lease."""

    def __init__(self, run_id: str, held: dict[str, Any]) -> None:
        super().__init__(f"run {run_id!r} is held by {held['holder']}")


class SharedFiles(FilesWithRevisions):
    """One file a run, with a revision, and with its status and the time of its last save."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.alive: dict[str, int] = {}

    def kept(self, context: Any) -> dict[str, Any]:
        """Return the four fields, the status and the time."""
        return {**record_of(context), "status": getattr(context, "status", "running"), "updated_at": time.time()}

    def delete(self, run_id: str) -> None:
        """Remove the run, and its lease."""
        with self.lock:
            self.lease_path(run_id).unlink(missing_ok=True)
            super().delete(run_id)

    def prune(self, *, older_than: float) -> list[str]:
        """Remove finished runs that are older."""
        with self.lock:
            old = [record["run_id"] for record in self.finished() if self.time_of(record) < time.time() - older_than]
            for run_id in old:
                self.delete(run_id)
            return old

    def finished(self) -> list[dict[str, Any]]:
        """Read the files of finished runs."""
        records = []
        for path in self.folder.glob("*.json"):
            with suppress(FileNotFoundError):
                records.append(json.loads(path.read_text()))
        return [record for record in records if record.get("status") == "finished"]

    def time_of(self, record: dict[str, Any]) -> float:
        """Return the time from which on a run grows old."""
        return float(record["updated_at"])

    def acquire(self, run_id: str, holder: str, ttl: float) -> Any:
        """Give a lease, if nobody who lives has one that has not expired."""
        with self.lock:
            self.expect_free(run_id)
            token = uuid.uuid4().hex
            self.alive[token] = os.open(self.alive_path(token), os.O_RDWR | os.O_CREAT)
            fcntl.flock(self.alive[token], fcntl.LOCK_EX)
            self.write_lease(run_id, holder, token, ttl)
            return run_id, holder, token

    def renew(self, lease: Any, ttl: float) -> Any:
        """Let it last longer, if it is still the one."""
        run_id, holder, token = lease
        with self.lock:
            held = self.lease_of(run_id)
            if not self.is_of(held, token):
                raise HeldError(run_id, held or {"holder": "nobody"})
            self.write_lease(run_id, holder, token, ttl)
            return lease

    def release(self, lease: Any) -> None:
        """Free the run, if it is still the one."""
        run_id, _, token = lease
        with self.lock:
            held = self.lease_of(run_id)
            if held is not None and held["token"] == token:
                self.lease_path(run_id).unlink()
            self.let_go(token)

    def close(self) -> None:
        """Give up every lease."""
        for token in list(self.alive):
            self.let_go(token)

    def expect_free(self, run_id: str) -> None:
        """Raise `HeldError` if somebody holds the run."""
        held = self.lease_of(run_id)
        if held is not None and self.now() < held["expires"] and self.lives(held["token"]):
            raise HeldError(run_id, held)

    def is_of(self, held: dict[str, Any] | None, token: str) -> bool:
        """Whether the lease that is held is the one of this token."""
        return held is not None and held["token"] == token

    def now(self) -> float:
        """Return the time by which leases expire; all processes of a host have this clock in common."""
        return time.monotonic()

    def lives(self, token: str) -> bool:
        """Whether the process that has taken a lease lives."""
        if token in self.alive:
            return True
        try:
            descriptor = os.open(self.alive_path(token), os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            self.alive_path(token).unlink()
            return False
        finally:
            os.close(descriptor)

    def let_go(self, token: str) -> None:
        """Close the file by which others see that this process lives."""
        descriptor = self.alive.pop(token, None)
        if descriptor is not None:
            self.alive_path(token).unlink(missing_ok=True)
            os.close(descriptor)

    def lease_of(self, run_id: str) -> dict[str, Any] | None:
        """Read the lease of a run."""
        try:
            held: dict[str, Any] = json.loads(self.lease_path(run_id).read_text())
        except FileNotFoundError:
            return None
        return held

    def write_lease(self, run_id: str, holder: str, token: str, ttl: float) -> None:
        """Write it; nothing of it has to survive the machine."""
        held = {"holder": holder, "token": token, "expires": self.now() + ttl}
        self.lease_path(run_id).write_text(json.dumps(held))

    def lease_path(self, run_id: str) -> Path:
        """Return the file of a run's lease."""
        return self.path(run_id).with_suffix(".lease")

    def alive_path(self, token: str) -> Path:
        """Return the file that the holder of a lease has locked."""
        return self.folder / f"{token}.alive"
