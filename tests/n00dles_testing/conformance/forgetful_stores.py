"""Stores for the tests of power loss: some right and odd, some whose calls do not tell what they do."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import socket
import time
import uuid
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar

from n00dles_testing.conformance.mutants.correct import (
    AppendOnlyLog,
    JSONFiles,
    new_record,
    record_of,
    sync_folder,
)
from n00dles_testing.conformance.mutants.p01 import MendsWithoutASync


class KeepsItInItsProcess(JSONFiles):
    """Has what it has read in a dictionary of its module, for as long as the process lives."""

    cache: ClassVar[dict[tuple[str, str], dict[str, Any]]] = {}

    def read(self, run_id: str) -> Any:
        key = (str(self.folder), run_id)
        if key not in self.cache and (found := super().read(run_id)) is not None:
            self.cache[key] = found
        return deepcopy(self.cache.get(key))

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        super().write(run_id, record)
        self.cache[str(self.folder), run_id] = deepcopy(record)

    def delete(self, run_id: str) -> None:
        super().delete(run_id)
        self.cache.pop((str(self.folder), run_id), None)


class WritesThroughAMap(JSONFiles):
    """Writes into a map of its file in memory."""

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        super().write(run_id, record)
        path = Path(self.folder, "pages")
        if not path.exists():
            path.write_bytes(bytes(4096))
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 4096) as pages:
            pages[0] += 1


class WritesARepeatThroughAMap(WritesThroughAMap):
    """Writes so only what it has written before."""

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        if record == self.read(run_id):
            super().write(run_id, record)
        else:
            JSONFiles.write(self, run_id, record)


class MendsThroughAMap(AppendOnlyLog):
    """Blots out a torn line in a map of its file in memory, before it cuts it off."""

    def read_file(self, *, after_an_error: bool = False) -> None:
        text = self.path.read_text() if self.path.exists() else ""
        if text and not text.endswith("\n"):
            with self.path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as pages:
                pages[-1:] = b" "
        super().read_file(after_an_error=after_an_error)


class EndsItsProcess(JSONFiles):
    """Ends its process when a sync has failed, as PostgreSQL does."""

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        try:
            super().write(run_id, record)
        except OSError:
            os._exit(1)


class SyncsTheFileSystem(JSONFiles):
    """Syncs the whole file system, through its folder, before it renames a file. Says so if that fails."""

    tries: ClassVar[int] = 1

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        aside = self.path(run_id).with_suffix(".new")
        aside.write_text(json.dumps(record))
        folder = os.open(self.folder, os.O_RDONLY)
        failed = all(ctypes.CDLL(None).syncfs(folder) for _ in range(self.tries))
        os.close(folder)
        if failed:
            raise OSError("the file system was not synced")
        aside.replace(self.path(run_id))
        sync_folder(self.folder)


class SyncsTheFileSystemUntilItWorks(SyncsTheFileSystem):
    """Tries that again, and loses what the first time was for."""

    tries = 3


class MendsLateWithoutASync(MendsWithoutASync):
    """Mends a log of a few lines with a sync, and a longer one without."""

    def read_file(self, *, after_an_error: bool = False) -> None:
        is_long = self.path.exists() and self.path.read_text().count("\n") > 3
        mending = MendsWithoutASync if is_long else AppendOnlyLog
        mending.read_file(self, after_an_error=after_an_error)


class WritesNoFile:
    """Is no store for long."""

    def __init__(self, _: str) -> None:
        self.runs: dict[str, dict[str, Any]] = {}

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        return deepcopy(self.runs.setdefault(run_id, new_record(run_id, inputs)))

    def save(self, run_id: str, context: Any) -> None:
        self.runs[run_id] = record_of(context)

    def delete(self, run_id: str) -> None:
        self.runs.pop(run_id, None)


class SavesNothing(JSONFiles):
    """Refuses each save."""

    def save(self, run_id: str, context: Any) -> None:
        raise PermissionError("no")


class LinksToItsLastVersion(JSONFiles):
    """Writes each version of a run to a file of its own, and links to the last one by its absolute path."""

    syncs = True

    def read(self, run_id: str) -> Any:
        link = self.path(run_id)
        return json.loads(link.read_text()) if link.is_symlink() else None

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        link = self.path(run_id)
        version, aside = (link.with_suffix(f".{uuid.uuid4().hex}.{kind}") for kind in ("version", "link"))
        with version.open("w") as file:
            json.dump(record, file)
            file.flush()
            if self.syncs:
                os.fsync(file.fileno())
        aside.symlink_to(version.resolve())
        aside.replace(link)
        if self.syncs:
            sync_folder(self.folder)


class LinksToItsLastVersionUnsynced(LinksToItsLastVersion):
    """Does the same, and waits for no disk."""

    syncs = False


class KeepsItBesideItsFolder(JSONFiles):
    """Has a folder of its own beside the one that it was given, and waits for no disk."""

    def __init__(self, folder: str) -> None:
        beside = Path(f"{folder}.store")
        beside.mkdir(exist_ok=True)
        super().__init__(str(beside))

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        self.path(run_id).write_text(json.dumps(record))


class KeepsKeys(JSONFiles):
    """Reads no file that others may read, nor an old one. Of the versions of a run, the newest one counts."""

    def versions(self, run_id: str) -> list[Path]:
        found = [each for each in self.folder.glob(f"{self.path(run_id).stem}.*") if each.suffix != ".new"]
        return sorted(found, key=lambda each: each.stat().st_mtime_ns)

    def read(self, run_id: str) -> Any:
        versions = self.versions(run_id)
        for each in versions:
            status = each.stat()
            if status.st_mode & 0o77 or time.time() - status.st_mtime > 3600:
                raise PermissionError(f"{each.name} may be read by others, or is old")
        return self.parsed(run_id, versions[-1]) if versions else None

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        aside = self.path(run_id).with_suffix(".new")
        with aside.open("w") as file:
            os.fchmod(file.fileno(), 0o600)
            json.dump(record, file)
            file.flush()
            os.fsync(file.fileno())
        aside.rename(aside.with_suffix(f".{uuid.uuid4().hex}"))
        sync_folder(self.folder)

    def delete(self, run_id: str) -> None:
        with self.lock:
            for each in self.versions(run_id):
                each.unlink()
            sync_folder(self.folder)


class ListensInItsFolder(JSONFiles):
    """Has a socket in its folder while it is open, and does not expect to find one."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(self.folder / "socket"))

    def close(self) -> None:
        self.socket.close()
        (self.folder / "socket").unlink()


class SyncsNothing(JSONFiles):
    """Waits for no disk."""

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        aside = self.path(run_id).with_suffix(".new")
        aside.write_text(json.dumps(record))
        aside.replace(self.path(run_id))


class SyncsNothingAndKeepsItInItsProcess(KeepsItInItsProcess, SyncsNothing):
    """Waits for no disk, and its own process sees nothing of that."""
