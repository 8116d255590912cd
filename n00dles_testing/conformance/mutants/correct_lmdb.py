"""A correct store on LMDB: a memory map, copy-on-write pages, one entry a node. Needs the package `lmdb`."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from .correct import NotStoredError, new_record, record_of, sync_folder

if TYPE_CHECKING:
    import lmdb

__all__ = ["LMDBRuns"]

_LARGEST_FILE = 4 * 1024**3


class LMDBRuns:
    """A run is an entry with its inputs, and one for each completed node; a save writes only what is new.

    Keys are the SHA-256 of the run's id and a number, since LMDB takes no key above 511 bytes; the id is in the value.
    Each call has the environment for itself, by a lock on a file beside it: LMDB forbids that a process opens one twice
    or carries it across a fork, and its file can only be replaced, as a delete does, while nobody has it open.
    """

    breaks: ClassVar[str | None] = None

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        with self.lock():
            if not (self.folder / "data.mdb").exists():
                # LMDB would write its first pages in place, of which a power loss may leave a part.
                with self.written_aside():
                    pass

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Read the run's entries, or write its first one."""
        with self.opened() as environment, environment.begin(write=True) as transaction:
            if transaction.get(_key(run_id)) is None:
                created = new_record(run_id, inputs)
                head = {"run_id": created["run_id"], "inputs": created["inputs"]}
                transaction.put(_key(run_id), json.dumps(head).encode())
            return self.read(transaction, run_id)

    def save(self, run_id: str, context: Any) -> None:
        """Write an entry for each node that is new, or has another output than the stored one."""
        record = record_of(context)
        with self.opened() as environment, environment.begin(write=True) as transaction:
            if transaction.get(_key(run_id)) is None:
                raise NotStoredError(run_id)
            places = {node: place for place, node in enumerate(self.read(transaction, run_id)["order"])}
            for node in record["order"]:
                key = _key(run_id, places.setdefault(node, len(places)))
                value = json.dumps([node, record["completed"][node]]).encode()
                if transaction.get(key) != value:
                    transaction.put(key, value)

    def delete(self, run_id: str) -> None:
        """Copy all entries but those of the run to a new file: LMDB keeps the bytes of the old pages."""
        with self.opened() as environment, environment.begin() as old, self.written_aside() as new:
            for key, value in old.cursor():
                if not key.startswith(_key(run_id)):
                    new.put(key, value)

    def read(self, transaction: lmdb.Transaction[bytes], run_id: str) -> dict[str, Any]:
        """Return the stored record."""
        head, *outputs = [json.loads(value) for _, value in _entries(transaction, run_id)]
        return {**head, "completed": dict(outputs), "order": [node for node, _ in outputs]}

    @contextmanager
    def opened(self) -> Iterator[lmdb.Environment]:
        """Wait for the lock, and open the environment."""
        import lmdb

        with self.lock(), lmdb.open(str(self.folder), map_size=_LARGEST_FILE) as environment:
            yield environment

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Wait for the lock on a file beside the environment."""
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextmanager
    def written_aside(self) -> Iterator[lmdb.Transaction[bytes]]:
        """Fill a new file by one transaction, and put it in place of the old one when all of it is on the disk."""
        import lmdb

        aside = self.folder / "aside"
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        with lmdb.open(str(aside), map_size=_LARGEST_FILE) as environment:
            with environment.begin(write=True) as transaction:
                yield transaction
            environment.sync(True)
        (aside / "data.mdb").replace(self.folder / "data.mdb")
        shutil.rmtree(aside)
        sync_folder(self.folder)


def _key(run_id: str, place: int | None = None) -> bytes:
    """Return the key of a run, or of the node at a place of it."""
    return hashlib.sha256(run_id.encode()).digest() + (b"" if place is None else place.to_bytes(4, "big"))


def _entries(transaction: lmdb.Transaction[bytes], run_id: str) -> Iterator[tuple[bytes, bytes]]:
    """Return the entries of a run in the order of their keys: the inputs, and the nodes as they completed."""
    cursor = transaction.cursor()
    found = cursor.set_range(_key(run_id))
    while found and cursor.key().startswith(_key(run_id)):
        yield cursor.key(), cursor.value()
        found = cursor.next()
