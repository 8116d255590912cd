"""fsspec, local files: a file a run, written in a transaction.

Used as its documentation recommends for writes that must not be seen half done
(https://filesystem-spec.readthedocs.io/en/latest/features.html#transactions): inside `with fs.transaction`, so that a
file is put into its place at the end. A transaction belongs to the file system object; the adapter has one of these for
each call, and names a file by the SHA-256 of the run's id.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast

from . import LAST_WRITER_WINS
from .records import Record, RecordStore

PACKAGES = ("fsspec",)
SERVER = None
_NO_COMPARE = "there is no way to write a file only if it is still the one that was read"
_FILES = "the interface of a file system promises no more than the file system below does without a sync"
GAPS = dict.fromkeys((*LAST_WRITER_WINS, "C05"), _NO_COMPARE) | {
    "S10": "files have no checksum",
    **dict.fromkeys(("P01", "P02", "P03"), _FILES),
}


class FileStore(RecordStore):
    """A run is a file of JSON text."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        _local().makedirs(folder, exist_ok=True)

    def read(self, run_id: str) -> Record | None:
        try:
            text = _local().cat_file(self._path(run_id))
        except FileNotFoundError:
            return None
        return cast(Record, json.loads(text))

    def write(self, run_id: str, record: Record) -> None:
        files = _local()
        with files.transaction, files.open(self._path(run_id), "wb") as file:
            file.write(json.dumps(record).encode())

    def remove(self, run_id: str) -> None:
        files = _local()
        if files.exists(self._path(run_id)):
            files.rm_file(self._path(run_id))

    def _path(self, run_id: str) -> str:
        return f"{self._folder}/{hashlib.sha256(run_id.encode()).hexdigest()}.json"


def _local() -> Any:
    import fsspec

    return fsspec.filesystem("file", skip_instance_cache=True)


def open_store(location: str) -> FileStore:
    """Open the store in a folder of the location."""
    return FileStore(f"{location}/runs")
