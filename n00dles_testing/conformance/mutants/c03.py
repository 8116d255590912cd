"""Stores that break C03: SIGKILL inside a call leaves the old state or the new one, whole."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from .correct import JSONFiles, NotStoredError, merged, new_record, record_of, replace_file, sync_folder
from .correct_sqlite import SQLiteRollback

__all__ = [
    "ChangesPlacesInOneLine",
    "DeletesThenInserts",
    "KeepsItsJournalInMemory",
    "LeavesWhatIsAside",
    "LocksForEver",
    "MovesTheOldOneAway",
    "StreamsWhatIsAside",
    "WritesInPlace",
    "WritesOneFileANode",
]


class MovesTheOldOneAway(JSONFiles):
    """Moves the old file to a backup, then the new one in its place. It knows in memory what to move back.

    So an error in between does no harm, and a kill makes the run look new.
    """

    breaks: ClassVar[str | None] = "C03"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.moved: set[Path] = set()

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write aside, and change places."""
        path = self.path(run_id)
        backup, aside = path.with_suffix(".backup"), path.with_suffix(".aside")
        replace_file(aside, json.dumps(record))
        if path.exists():
            self.moved.add(path)
            path.replace(backup)
        aside.replace(path)
        backup.unlink(missing_ok=True)
        self.moved.discard(path)
        sync_folder(self.folder)

    def read(self, run_id: str) -> Any:
        """Move the old one back first, if an error has left it away."""
        path = self.path(run_id)
        if path in self.moved:
            backup = path.with_suffix(".backup")
            if backup.exists() and not path.exists():
                backup.replace(path)
            self.moved.discard(path)
        return super().read(run_id)

    def delete(self, run_id: str) -> None:
        """Remove what a failed save has left, too."""
        with self.lock:
            for suffix in (".backup", ".aside"):
                self.path(run_id).with_suffix(suffix).unlink(missing_ok=True)
            super().delete(run_id)


class ChangesPlacesInOneLine(MovesTheOldOneAway):
    """The same in one line: C code calls both renames, and Python tells of none. Only the kernel sees between them."""

    breaks: ClassVar[str | None] = "C03"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write aside, and change places."""
        path = self.path(run_id)
        backup, aside = path.with_suffix(".backup"), path.with_suffix(".aside")
        replace_file(aside, json.dumps(record))
        if path.exists():
            self.moved.add(path)
            deque(map(os.replace, (path, aside), (backup, path)), maxlen=0)
        else:
            aside.replace(path)
        backup.unlink(missing_ok=True)
        self.moved.discard(path)
        sync_folder(self.folder)


class LeavesWhatIsAside(JSONFiles):
    """Writes aside under another name each time, and a delete does not look for what a kill has left there.

    After an error it cleans up, so that only a kill leaves something: the run's texts, for ever.
    """

    breaks: ClassVar[str | None] = "C03"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write aside, and replace the run's file."""
        aside = self.folder / f"{uuid.uuid4().hex}.aside"
        try:
            replace_file(aside, json.dumps(record))
            aside.replace(self.path(run_id))
        except BaseException:
            for path in (aside, aside.with_suffix(".new")):
                path.unlink(missing_ok=True)
            raise
        sync_folder(self.folder)


class LocksForEver(JSONFiles):
    """Marks a run that is being saved by a file beside it, so that nobody else saves it meanwhile.

    Whoever has made the file removes it, also after an error. That of a process which was killed outlives its owner.
    """

    breaks: ClassVar[str | None] = "C03"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.owner = uuid.uuid4().hex

    def save(self, run_id: str, context: Any) -> None:
        """Save, if nobody else does."""
        with self.lock, self.marked(self.path(run_id).with_suffix(".busy")):
            super().save(run_id, context)

    @contextmanager
    def marked(self, mark: Path) -> Iterator[None]:
        """Have the file; one that we could not remove before is still ours."""
        if mark.exists() and mark.read_text() != self.owner:
            raise TimeoutError(f"another worker has been saving for too long: {mark}")
        aside = mark.with_suffix(".free")
        aside.write_text(self.owner)
        aside.replace(mark)
        try:
            yield
        finally:
            mark.unlink()


class WritesInPlace(JSONFiles):
    """Opens the run's file for writing, and writes: until that is done, the record is nowhere.

    A full disk does to it what a kill does, so C04 and C05 see it as well; and so does a second kill, for C06.
    """

    breaks: ClassVar[str | None] = "C03"
    also_breaks: ClassVar[tuple[str, ...]] = ("C04", "C05", "C06")

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write over the old record."""
        self.path(run_id).write_text(json.dumps(record))


class WritesOneFileANode(JSONFiles):
    """Replaces a file for each node, one after the other, each of them as it should be (mastra-ai/mastra #20225).

    An error between two of them leaves the same half of a save, so C04 sees it as well.
    """

    breaks: ClassVar[str | None] = "C03"
    also_breaks: ClassVar[tuple[str, ...]] = ("C04",)

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write each node that is new; the run's own file only once."""
        if not self.path(run_id).exists():
            super().write(run_id, {**record, "completed": {}, "order": []})
        for number, node in enumerate(record["order"]):
            form = json.dumps({"run_id": run_id, "node": node, "output": record["completed"][node]})
            path = self.node_path(run_id, number)
            if not path.exists() or path.read_text() != form:
                replace_file(path, form)

    def read(self, run_id: str) -> Any:
        """Put the files together."""
        record = super().read(run_id)
        if record is not None:
            for path in self.node_paths(run_id):
                stored = self.parsed(run_id, path)
                record["completed"][stored["node"]] = stored["output"]
                record["order"].append(stored["node"])
        return record

    def delete(self, run_id: str) -> None:
        """Remove all files."""
        with self.lock:
            for path in reversed(self.node_paths(run_id)):
                path.unlink()
            super().delete(run_id)

    def node_paths(self, run_id: str) -> list[Path]:
        """Return the files of the nodes, in the order of completion."""
        return sorted(self.folder.glob(f"{self.path(run_id).stem}.*.node"))

    def node_path(self, run_id: str, number: int) -> Path:
        """Return the file of the node that was completed after so many others."""
        return self.path(run_id).with_suffix(f".{number:06}.node")


class DeletesThenInserts:
    """Saves by a delete and an insert, each a transaction of its own.

    An error at the insert leaves nothing, either: C04 sees it as well, and C05, since then it cannot be saved again.
    """

    breaks: ClassVar[str | None] = "C03"
    also_breaks: ClassVar[tuple[str, ...]] = ("C04", "C05")

    def __init__(self, folder: str) -> None:
        self.lock = threading.Lock()
        self.connection = sqlite3.connect(Path(folder) / "runs.db", check_same_thread=False, isolation_level=None)
        self.connection.execute("PRAGMA synchronous = EXTRA")
        self.connection.execute("PRAGMA secure_delete = ON")
        self.connection.execute("CREATE TABLE IF NOT EXISTS runs (run_id TEXT PRIMARY KEY, record TEXT)")

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Read the row, or insert it."""
        with self.lock:
            if self.read(run_id) is None:
                self.insert(run_id, new_record(run_id, inputs))
            return self.read(run_id)

    def save(self, run_id: str, context: Any) -> None:
        """Replace the row, in two steps."""
        with self.lock:
            stored = self.read(run_id)
            if stored is None:
                raise NotStoredError(run_id)
            self.remove(run_id)
            self.insert(run_id, merged(stored, record_of(context)))

    def delete(self, run_id: str) -> None:
        """Delete the row."""
        with self.lock:
            self.remove(run_id)

    def remove(self, run_id: str) -> None:
        """Delete the row, and commit."""
        self.connection.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))

    def insert(self, run_id: str, record: dict[str, Any]) -> None:
        """Insert the row, if nobody else has, and commit."""
        self.connection.execute("INSERT OR IGNORE INTO runs VALUES (?, ?)", (run_id, json.dumps(record)))

    def read(self, run_id: str) -> Any:
        """Return the stored record, or None."""
        row = self.connection.execute("SELECT record FROM runs WHERE run_id = ?", (run_id,)).fetchone()
        return None if row is None else json.loads(row[0])

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


class KeepsItsJournalInMemory(SQLiteRollback):
    """Takes a popular advice: `PRAGMA journal_mode = MEMORY` makes SQLite faster.

    A process that dies while SQLite writes the pages of a commit takes the old ones with it. That is within one call:
    Python tells of nothing there. On a disk that stays full the old pages cannot be written back, so C04 sees it too.
    """

    breaks: ClassVar[str | None] = "C03"
    also_breaks: ClassVar[tuple[str, ...]] = ("C04",)

    def connect(self) -> sqlite3.Connection:
        """Return a connection that writes no journal."""
        connection = super().connect()
        connection.execute("PRAGMA journal_mode = MEMORY")
        return connection


class StreamsWhatIsAside(JSONFiles):
    """Writes aside by `json.dump`, in many small writes, and a delete does not remove what a kill has left there.

    The text is on disk only from the flush to the rename: two moments among dozens that Python tells of.
    """

    breaks: ClassVar[str | None] = "C03"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write aside, and replace the run's file."""
        path = self.path(run_id)
        aside = path.with_suffix(".tmp")
        try:
            with aside.open("w") as file:
                json.dump(record, file)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        sync_folder(self.folder)
