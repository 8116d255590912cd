"""The correct stores that the mutants are made from. They keep the contract, and the suite's own tests prove it.

They are written as a user would write them: plain classes with sync methods, no base class, nothing of n00dles. Two
keep no revision: a save is merged with what is stored, so that no worker takes away what another one has completed. The
third refuses a save that continues an older state.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar

__all__ = [
    "AppendOnlyLog",
    "FilesWithRevisions",
    "FolderLock",
    "JSONFiles",
    "NotStoredError",
    "StaleError",
    "merged",
    "new_record",
    "record_of",
    "sync_folder",
]


class NotStoredError(LookupError):
    """A run that was deleted is saved: whoever still works on it must not bring it back."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"run {run_id!r} was not saved: it is not stored, so it was deleted")


def new_record(run_id: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the record of a run that begins."""
    return {"run_id": run_id, "inputs": deepcopy(inputs), "completed": {}, "order": []}


def record_of(context: Any) -> dict[str, Any]:
    """Copy the four fields that every store must keep.

    A node may complete meanwhile, in another thread: the order is read first, and decides.
    """
    order = list(context.order)
    completed = {node: deepcopy(context.completed[node]) for node in order}
    return {"run_id": context.run_id, "inputs": deepcopy(context.inputs), "completed": completed, "order": order}


def merged(stored: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """Return `record` together with what only `stored` has: a completed node never disappears."""
    order = [*stored["order"], *(node for node in record["order"] if node not in stored["completed"])]
    return {**stored, "completed": {**stored["completed"], **record["completed"]}, "order": order}


def sync_folder(path: Path) -> None:
    """Make a rename or a removal durable."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class FolderLock:
    """One at a time in a folder: threads by a lock of Python's, processes by one of the operating system's on a file.

    Whoever has it may enter it again.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "lock"
        self.of_threads = threading.RLock()
        self.held: list[int] = []

    def __enter__(self) -> None:
        """Wait for both locks."""
        self.of_threads.acquire()
        try:
            descriptor = os.dup(self.held[0]) if self.held else os.open(self.path, os.O_RDWR | os.O_CREAT)
        except BaseException:
            self.of_threads.release()
            raise
        self.held.append(descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        """Give both up."""
        os.close(self.held.pop())
        self.of_threads.release()


class JSONFiles:
    """One file a run, replaced whole by each save: written aside, synced, renamed, and the folder synced."""

    breaks: ClassVar[str | None] = None

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.lock = FolderLock(self.folder)

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Read the run's file, or write it."""
        with self.lock:
            found = self.read(run_id)
            if found is not None:
                return found
            record = new_record(run_id, inputs)
            self.write(run_id, record)
            return record

    def save(self, run_id: str, context: Any) -> None:
        """Replace the run's file."""
        with self.lock:
            stored = self.read(run_id)
            if stored is None:
                raise NotStoredError(run_id)
            self.write(run_id, merged(stored, self.kept(context)))

    def delete(self, run_id: str) -> None:
        """Remove the run's file, and before it what a kill has left aside: that holds the run's texts, too."""
        with self.lock:
            for aside in self.folder.glob(f"{self.path(run_id).stem}.*new"):
                aside.unlink()
            self.path(run_id).unlink(missing_ok=True)
            sync_folder(self.folder)

    def path(self, run_id: str) -> Path:
        """Return the file of a run: its id in hex, so that no two ids share one."""
        return self.folder / f"{run_id.encode().hex()}.json"

    def read(self, run_id: str) -> Any:
        """Return the stored record, or None."""
        path = self.path(run_id)
        return self.parsed(run_id, path) if path.exists() else None

    def parsed(self, run_id: str, path: Path) -> Any:
        """Return the record in a file, which must be that of the run: somebody may have restored the wrong one."""
        record = json.loads(path.read_text())
        if self.path(record["run_id"]) != self.path(run_id):
            raise ValueError(f"{path} holds run {record['run_id']!r}, and should hold {run_id!r}")
        return record

    def kept(self, context: Any) -> dict[str, Any]:
        """Return what is kept of a context."""
        return record_of(context)

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Replace the record, so that a crash leaves the old one or the new one."""
        replace_file(self.path(run_id), json.dumps(record))


class StaleError(Exception):
    """A run is saved from an older state than the stored one."""

    def __init__(self, run_id: str, stored: dict[str, Any] | None) -> None:
        at = "it is not stored" if stored is None else f"it is at revision {stored['revision']}, or another run"
        super().__init__(f"run {run_id!r} was not saved: {at}; load it again")


class FilesWithRevisions(JSONFiles):
    """One file a run, with a revision that each save continues, and an incarnation that tells two runs of one id."""

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Read the run's file, or write its first revision."""
        with self.lock:
            if self.read(run_id) is None:
                self.write(run_id, {**new_record(run_id, inputs), "revision": 1, "incarnation": uuid.uuid4().hex})
            return self.read(run_id)

    def save(self, run_id: str, context: Any) -> None:
        """Replace the run's file, if the context continues it."""
        with self.lock:
            stored = self.read(run_id)
            if stored is not None and self.has_landed(context, stored):
                context.revision = stored["revision"]
            if stored is None or not self.continues(context, stored):
                raise StaleError(run_id, stored)
            self.write_next(run_id, context, stored)

    def has_landed(self, context: Any, stored: dict[str, Any]) -> bool:
        """Whether what is stored is the context's own save, of which it was only told that it had failed."""
        kept = self.kept(context)
        order = stored["order"]
        return (
            (context.incarnation, context.revision + 1) == (stored["incarnation"], stored["revision"])
            and order == kept["order"][: len(order)]
            and all(stored["completed"][node] == kept["completed"][node] for node in order)
        )

    def continues(self, context: Any, stored: dict[str, Any]) -> bool:
        """Whether a context was loaded, or last saved, as what is stored."""
        return bool((context.incarnation, context.revision) == (stored["incarnation"], stored["revision"]))

    def write_next(self, run_id: str, context: Any, stored: dict[str, Any]) -> None:
        """Write the next revision."""
        count = {"revision": stored["revision"] + 1, "incarnation": stored["incarnation"]}
        self.write(run_id, {**self.kept(context), **count})
        context.revision = count["revision"]


class AppendOnlyLog:
    """All runs in memory, and in one file to which each change is appended as a line.

    A line counts by its end, which is written when the rest of it is on the disk: after a power loss a part of what was
    not synced may be there, in any order. A delete writes the file anew without the run, so that nothing of it is left.
    After an error nobody knows what the file holds, so it is read anew, and written anew: a sync that has failed may
    have lost what the next one takes for written.
    """

    breaks: ClassVar[str | None] = None

    def __init__(self, folder: str) -> None:
        self.path = Path(folder) / "runs.log"
        # Between two processes as well: what one has begun to write is no torn line for the other.
        self.lock = FolderLock(self.path.parent)
        with self.lock:
            self.read_file()

    def read_file(self, *, after_an_error: bool = False) -> None:
        """Read what is there, cut off a line that a crash or an error has torn, and open the file to append."""
        self.runs: dict[str, dict[str, Any]] = {}
        if self.path.exists():
            text = self.path.read_text()
            self.replay(text)
            if after_an_error or (text and not text.endswith("\n")):
                # The next line would be part of the one that is torn.
                replace_file(self.path, text[: text.rfind("\n") + 1])
        else:
            self.path.touch()
            sync_folder(self.path.parent)
        self.file = self.path.open("a")
        self.is_sound = True

    @contextmanager
    def sound(self) -> Iterator[None]:
        """Have the file for one caller, in a state that is known."""
        with self.lock:
            if not self.is_sound:
                with suppress(OSError):  # what is left to be written is as lost as the rest
                    self.file.close()
                self.read_file(after_an_error=True)
            self.is_sound = False
            yield
            self.is_sound = True

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Return a copy of the run, or append a new one."""
        with self.sound():
            if run_id not in self.runs:
                self.append(run_id, new_record(run_id, inputs))
            return deepcopy(self.runs[run_id])

    def save(self, run_id: str, context: Any) -> None:
        """Append the run as it now is."""
        with self.sound():
            if run_id not in self.runs:
                raise NotStoredError(run_id)
            self.append(run_id, merged(self.runs[run_id], record_of(context)))

    def delete(self, run_id: str) -> None:
        """Write the file anew, without the run."""
        with self.sound():
            self.apply(run_id, None)
            self.file.close()
            replace_file(self.path, "".join(json.dumps(line) + "\n" for line in self.runs.items()))
            self.file = self.path.open("a")

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def append(self, run_id: str, record: dict[str, Any] | None) -> None:
        """Append one line and sync it, and then its end."""
        for text in (json.dumps([run_id, record]), "\n"):
            self.file.write(text)
            self.file.flush()
            os.fsync(self.file.fileno())
        self.apply(run_id, record)

    def apply(self, run_id: str, record: dict[str, Any] | None) -> None:
        """Do to the runs in memory what a line says."""
        if record is None:
            self.runs.pop(run_id, None)
        else:
            self.runs[run_id] = record

    def replay(self, text: str) -> None:
        """Apply every whole line; one that a crash has torn was never acknowledged."""
        for line in text.splitlines(keepends=True):
            if line.endswith("\n"):
                self.apply(*json.loads(line))


def replace_file(path: Path, text: str) -> None:
    """Write a file aside, sync it, and put it in place of the old one."""
    aside = path.with_suffix(".new")
    with aside.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)
    sync_folder(path.parent)
