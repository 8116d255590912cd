"""A state store from scratch: one JSON file a run, no base class, safe against kills, power loss and a second worker.

Hold it against the contract:

    n00dles-testing check docs/examples/my_store.py:open_store
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from n00dles import CorruptCheckpointError, PipelineContext, StaleContextError

FORMAT = b"my-store-1"


class JSONFileStore:
    """Keeps each run in a file of its own in `folder`, which is made if need be."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        _sync_folder(self.folder.parent)

    def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> PipelineContext:
        with self._locked():
            record = self._read(run_id)
            if record is not None:
                return PipelineContext.from_dict(record)
            ctx = PipelineContext(run_id, inputs)
            self._write_next(ctx)
            return ctx

    def save(self, run_id: str, ctx: PipelineContext) -> None:
        with self._locked():
            record = self._read(run_id)
            if record and ctx.in_doubt and record["save_id"] == ctx.in_doubt.save_id:
                # The last save raised, but had already been renamed into place: it counts, and is no stranger's.
                ctx.acknowledge(ctx.in_doubt)
            stored = (record["incarnation"], record["revision"]) if record else (ctx.incarnation, 0)
            if stored != (ctx.incarnation, ctx.revision):
                raise StaleContextError(
                    f"run {run_id!r} was saved by another, deleted or created anew since it was loaded; nothing was "
                    "written. Load it again.",
                    run_id=run_id,
                )
            self._write_next(ctx)

    def delete(self, run_id: str) -> None:
        with self._locked():
            # A process that was killed in `save` may have left this, with all that is in the run.
            self._temporary(run_id).unlink(missing_ok=True)
            self._path(run_id).unlink(missing_ok=True)
            _sync_folder(self.folder)

    def _path(self, run_id: str) -> Path:
        # A hash is a safe file name for an id of any length, with any characters; the record holds the id itself.
        return self.folder / f"{hashlib.sha256(run_id.encode()).hexdigest()}.run"

    def _temporary(self, run_id: str) -> Path:
        # One name is enough, since only who has the lock writes; and `delete` has to find it.
        return self._path(run_id).with_suffix(".tmp")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one thread of one process at a time read and write; a process that dies lets go of the lock."""
        with open(self.folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _read(self, run_id: str) -> dict[str, Any] | None:
        path = self._path(run_id)
        try:
            head, _, body = path.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        # A flipped bit may leave valid JSON behind, hence the checksum.
        if head.split() == [FORMAT, _checksum(body)]:
            record: dict[str, Any] = json.loads(body)
            if record["run_id"] == run_id:
                return record
        raise CorruptCheckpointError(
            f"the record of run {run_id!r} in {path} is damaged, or of another version. It is left as it is; restore "
            "it from a backup, or delete the run.",
            run_id=run_id,
        )

    def _write_next(self, ctx: PipelineContext) -> None:
        """Write the next revision: whole, or not at all, and on the disk before this returns."""
        batch = ctx.begin_save()
        record = {**ctx.to_dict(), "revision": batch.revision + 1, "save_id": batch.save_id}
        body = json.dumps(record, ensure_ascii=False).encode()
        path = self._path(ctx.run_id)
        temporary = self._temporary(ctx.run_id)
        try:
            with open(temporary, "wb") as file:
                file.write(FORMAT + b" " + _checksum(body) + b"\n" + body)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync_folder(self.folder)
        ctx.acknowledge(batch)


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()


def _sync_folder(folder: Path) -> None:
    """Make a rename or an unlink in `folder` survive a power cut: it changes the folder, not the file."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_store(location: str) -> JSONFileStore:
    """Open the store at `location`, a folder: the same location means the same data."""
    return JSONFileStore(location)
