"""Stores that do to their process what a checker would rather not have done to its own."""

from __future__ import annotations

import asyncio
import base64
import ctypes
import json
import os
import sys
import tempfile
import threading
import time
import zlib
from copy import deepcopy
from typing import Any, ClassVar

from n00dles.context import PipelineContext
from n00dles.stores.sqlite import SQLiteStateStore
from n00dles_testing.conformance.mutants.correct import (
    AppendOnlyLog,
    FilesWithRevisions,
    JSONFiles,
    merged,
    new_record,
    record_of,
)

FOREVER = 3600


class _WhenNoneIsSaved(JSONFiles):
    """Misbehaves when it has to save a None, which only S02 asks for; all else is right."""

    def misbehave(self) -> None: ...

    def save(self, run_id: str, context: Any) -> None:
        if None in context.completed.values():
            self.misbehave()
        super().save(run_id, context)


class Exits(_WhenNoneIsSaved):
    def misbehave(self) -> None:
        sys.exit("the store has had enough")


class KillsTheProcess(_WhenNoneIsSaved):
    def misbehave(self) -> None:
        print("about to go", flush=True)
        os._exit(7)


class HangsInAThread(_WhenNoneIsSaved):
    def misbehave(self) -> None:
        time.sleep(FOREVER)


class Raises(_WhenNoneIsSaved):
    def misbehave(self) -> None:
        raise ValueError("no None here, please")


class CancelsItself(_WhenNoneIsSaved):
    def misbehave(self) -> None:
        raise asyncio.CancelledError


class _Async:
    def __init__(self, folder: str) -> None:
        self.files = JSONFiles(folder)

    async def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        return self.files.load_or_create(run_id, inputs)

    async def save(self, run_id: str, context: Any) -> None:
        if None in context.completed.values():
            await self.misbehave()
        self.files.save(run_id, context)

    async def misbehave(self) -> None: ...

    async def delete(self, run_id: str) -> None:
        self.files.delete(run_id)


class BlocksTheLoop(_Async):
    async def misbehave(self) -> None:
        time.sleep(FOREVER)


class NeverAnswers(_Async):
    async def misbehave(self) -> None:
        await asyncio.Event().wait()


class ReturnsNone(JSONFiles):
    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        super().load_or_create(run_id, inputs)


class ReturnsARunWithoutOrder(JSONFiles):
    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        record = super().load_or_create(run_id, inputs)
        return {name: part for name, part in record.items() if name != "order"}


class Prints(JSONFiles):
    def save(self, run_id: str, context: Any) -> None:
        print('{"result": "all is well"}')
        os.write(1, b"and straight to the descriptor\n")
        super().save(run_id, context)


class LeaksThreads(JSONFiles):
    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        threading.Thread(target=time.sleep, args=(FOREVER,)).start()


class CannotBeClosed(JSONFiles):
    def close(self) -> None:
        raise OSError("still busy")


_one: list[JSONFiles] = []


def always_the_same_object(location: str) -> JSONFiles:
    if not _one:
        _one.append(JSONFiles(location))
    return _one[0]


def raises(location: str) -> Any:
    raise RuntimeError("no database today")


def hangs(location: str) -> Any:
    time.sleep(FOREVER)


def exits(location: str) -> Any:
    sys.exit(4)


def kills_the_process(location: str) -> Any:
    os._exit(5)


def gives_none(location: str) -> Any:
    return None


class Half:
    def save(self, run_id: str, ctx: Any) -> None: ...


def gives_half_a_store(location: str) -> Any:
    return Half()


def needs_more(location: str, password: str) -> Any:
    return JSONFiles(location)


not_callable = 3


class LeavesAJobInTheLoopsOwnExecutor(_Async):
    async def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        asyncio.get_running_loop().run_in_executor(None, time.sleep, FOREVER)
        return await super().load_or_create(run_id, inputs)


class TakesItsTime(JSONFiles):
    """Slow, and right: no call takes long, the whole check does."""

    def save(self, run_id: str, context: Any) -> None:
        time.sleep(0.01)
        super().save(run_id, context)


class _Copies:
    """A run that can be read, and whose every edit is lost."""

    def __init__(self, record: dict[str, Any]) -> None:
        self._text = json.dumps(record)

    @property
    def run_id(self) -> Any:
        return json.loads(self._text)["run_id"]

    @property
    def inputs(self) -> Any:
        return json.loads(self._text)["inputs"]

    @property
    def completed(self) -> Any:
        return json.loads(self._text)["completed"]

    @property
    def order(self) -> Any:
        return json.loads(self._text)["order"]


class HandsOutCopiesOfCopies(JSONFiles):
    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        return _Copies(super().load_or_create(run_id, inputs))


class WritesThroughC:
    """Keeps its runs in memory, and a file open that Python's own hooks do not see: a client library does the same."""

    def __init__(self) -> None:
        self.runs: dict[str, Any] = {}
        name = os.path.join(tempfile.gettempdir(), f"n00dles-through-c-{os.getpid()}")
        self.descriptor = ctypes.CDLL(None).open(name.encode(), os.O_RDWR | os.O_CREAT, 0o600)
        os.unlink(name)

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        return json.loads(
            self.runs.setdefault(run_id, json.dumps({"run_id": run_id, "inputs": inputs, "completed": {}, "order": []}))
        )

    def save(self, run_id: str, context: Any) -> None:
        self.runs[run_id] = json.dumps(record_of(context))

    def delete(self, run_id: str) -> None:
        self.runs.pop(run_id, None)

    def close(self) -> None:
        os.close(self.descriptor)


def writes_through_c(location: str) -> Any:
    return WritesThroughC()


class RefusesWhatItCannotHold(JSONFiles):
    """A database whose texts hold no NUL and whose integers have 64 bits."""

    def save(self, run_id: str, context: Any) -> None:
        for output in context.completed.values():
            if output in ("three\x00key facts", 2**63):
                raise ValueError("out of range")
        super().save(run_id, context)


class RefusesAndWritesAllTheSame(RefusesWhatItCannotHold):
    def save(self, run_id: str, context: Any) -> None:
        self.write(run_id, record_of(context))
        super().save(run_id, context)


class RefusesSpaces(JSONFiles):
    def save(self, run_id: str, context: Any) -> None:
        if any(isinstance(output, str) and output != output.strip() for output in context.completed.values()):
            raise ValueError("white space")
        super().save(run_id, context)


class _Refuses(JSONFiles):
    """Has no room for ids with a slash."""

    error: Exception = ValueError("a run id has no slash")
    seen = 0

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        if "/" in run_id:
            self.refuse()
        return super().load_or_create(run_id, inputs)

    def refuse(self) -> None:
        raise self.error


class RefusesSlashes(_Refuses): ...


class TripsOverSlashes(_Refuses):
    error = KeyError("a/b")


class SaysNothing(_Refuses):
    error = ValueError()


class RefusesEachSecondTime(_Refuses):
    def refuse(self) -> None:
        self.seen += 1
        if self.seen % 2:
            raise self.error


class RefusesAtTheSave(JSONFiles):
    def save(self, run_id: str, context: Any) -> None:
        if "/" in run_id:
            raise ValueError("a run id has no slash")
        super().save(run_id, context)


class Compresses(AppendOnlyLog):
    """What is in its file cannot be read without it, and a delete leaves it there."""

    def delete(self, run_id: str) -> None:
        with self.lock:
            self.append(run_id, None)

    def append(self, run_id: str, record: dict[str, Any] | None) -> None:
        line = base64.b85encode(zlib.compress(json.dumps([run_id, record]).encode()))
        self.file.write(line.decode() + "\n")
        self.file.flush()
        self.apply(run_id, record)

    def replay(self, text: str) -> None:
        for line in text.split():
            self.apply(*json.loads(zlib.decompress(base64.b85decode(line))))


class CompactsWhenItIsClosed(AppendOnlyLog):
    def delete(self, run_id: str) -> None:
        with self.lock:
            self.append(run_id, None)

    def close(self) -> None:
        super().close()
        self.path.write_text("".join(json.dumps(line) + "\n" for line in self.runs.items()))


class IgnoresLateSaves(JSONFiles):
    """Acknowledges a save of a run that is gone, as an `UPDATE` that finds no row does."""

    def save(self, run_id: str, context: Any) -> None:
        with self.lock:
            if self.read(run_id) is not None:
                super().save(run_id, context)


class ForgetsItsRevisions(SQLiteStateStore):
    """Takes a save of any revision, as long as the run is there."""

    def __init__(self, folder: str) -> None:
        super().__init__(os.path.join(folder, "runs.db"))

    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        stored = await self.load(run_id)
        if stored is None:
            raise LookupError(f"no run {run_id!r}")
        for node, output in ctx.completed.items():
            stored.checkpoint(node, output)
        await super().save(run_id, stored)


class DropsStaleSaves(JSONFiles):
    """Acknowledges a save from an older state, and does nothing."""

    def save(self, run_id: str, context: Any) -> None:
        with self.lock:
            stored = self.read(run_id)
            if stored is not None and set(stored["order"]) <= set(context.order):
                super().save(run_id, context)


class KeepsTheFirstOutput(JSONFiles):
    """Merges, and never replaces an output."""

    def save(self, run_id: str, context: Any) -> None:
        with self.lock:
            stored = self.read(run_id)
            kept = self.kept(context)
            kept["completed"].update(stored["completed"])
            self.write(run_id, merged(stored, kept))


class GetsSlow(JSONFiles):
    """Each save of a run takes longer than the one before."""

    def save(self, run_id: str, context: Any) -> None:
        time.sleep(0.01 * len(context.order))
        super().save(run_id, context)


class NewestByFileTime(JSONFiles):
    """One file a save, and the one that was written last, by its time, is loaded."""

    def read(self, run_id: str) -> Any:
        versions = list(self.folder.glob(f"{self.path(run_id).stem}.*.json"))
        return json.loads(max(versions, key=lambda path: path.stat().st_mtime_ns).read_text()) if versions else None

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        self.path(run_id).with_suffix(f".{len(record['order'])}.json").write_text(json.dumps(record))
        time.sleep(0.02)  # the times of files are as coarse as the kernel's tick

    def delete(self, run_id: str) -> None:
        for path in self.folder.glob(f"{self.path(run_id).stem}.*.json"):
            path.unlink()


class RemembersTheTime(JSONFiles):
    """Its module keeps the last time that it has used, as that of a generator of ids does, and time may not go back."""

    last = 0.0

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        if time.time() < RemembersTheTime.last:
            raise RuntimeError("the clock was set back")
        RemembersTheTime.last = time.time()
        super().write(run_id, record)


class ReadsOnceInAProcess(JSONFiles):
    """Keeps what it has read or written for all its instances, and believes no other process to change that."""

    known: ClassVar[dict[tuple[Any, str], dict[str, Any]]] = {}

    def read(self, run_id: str) -> Any:
        return deepcopy(self.known.get((self.folder, run_id))) or super().read(run_id)

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        super().write(run_id, record)
        self.known[self.folder, run_id] = record

    def delete(self, run_id: str) -> None:
        self.known.pop((self.folder, run_id), None)
        super().delete(run_id)


class BelongsToAThread(_Async):
    """Its saves give way to no other, and it refuses other threads, as a connection of sqlite3 does."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.thread = threading.get_ident()

    async def save(self, run_id: str, context: Any) -> None:
        if threading.get_ident() != self.thread:
            raise RuntimeError("made in another thread")
        await super().save(run_id, context)


class RefusesWhileItSaves(FilesWithRevisions):
    """Takes one save of a run at a time."""

    busy = False

    async def save(self, run_id: str, context: Any) -> None:  # type: ignore[override]
        if self.busy:
            raise RuntimeError("busy")
        self.busy = True
        try:
            await asyncio.sleep(0)
            super().save(run_id, context)
        finally:
            self.busy = False


class LosesWhatThreadsSave:
    """In memory, never gives way, and reads and writes without a lock: only threads show it."""

    def __init__(self) -> None:
        self.runs: dict[str, Any] = {}

    async def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        return json.loads(self.runs.setdefault(run_id, json.dumps(new_record(run_id, inputs))))

    async def save(self, run_id: str, context: Any) -> None:
        stored = json.loads(self.runs[run_id])
        time.sleep(0.01)
        self.runs[run_id] = json.dumps(merged(stored, record_of(context)))

    async def delete(self, run_id: str) -> None:
        self.runs.pop(run_id, None)


class _Bends(JSONFiles):
    """Changes what it writes, in a way that only long texts or names show."""

    def bent(self, record: dict[str, Any]) -> dict[str, Any]:
        return record

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        super().write(run_id, self.bent(record))


class MakesLineEndsOne(_Bends):
    """Keeps long texts in a file that is opened as text."""

    def bent(self, record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "completed": {node: self.read_back(output) for node, output in record["completed"].items()}}

    def read_back(self, output: Any) -> Any:
        if not isinstance(output, str) or len(output) < 10_000:
            return output
        return output.replace("\r\n", "\n").replace("\r", "\n")


class CutsInputs(_Bends):
    """Keeps an input in a column of 65 535 characters that cuts."""

    def bent(self, record: dict[str, Any]) -> dict[str, Any]:
        inputs = {name: value[:65_535] if isinstance(value, str) else value for name, value in record["inputs"].items()}
        return {**record, "inputs": inputs}


class CutsNamesOfInputs(_Bends):
    """Keeps the name of an input in a column of 64 characters that cuts."""

    def bent(self, record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "inputs": {name[:64]: value for name, value in record["inputs"].items()}}


class RefusesLongInputs(JSONFiles):
    """Has no room for long inputs, and says so."""

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        if any(len(name) > 64 or len(str(value)) > 10_000 for name, value in inputs.items()):
            raise ValueError("an input has more than 10 000 characters, or its name more than 64")
        return super().load_or_create(run_id, inputs)


class KeepsTwoHundredRuns(JSONFiles):
    """Removes all but the 200 newest runs when it is opened."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        runs = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        for path in runs[:-200]:
            path.unlink()
