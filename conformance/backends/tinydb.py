"""TinyDB: documents in one JSON file.

Used as its "getting started" shows (https://tinydb.readthedocs.io/en/latest/getting-started.html): `upsert` with a
query for the id of the run, `get` and `remove`, with the default storage. The adapter adds nothing. The introduction
of its documentation says that TinyDB is not for several processes or threads, nor where ACID guarantees are needed.
"""

from __future__ import annotations

from typing import Any, cast

from . import LAST_WRITER_WINS
from .records import Record, RecordStore

PACKAGES = ("tinydb",)
SERVER = None
_ONE_AT_A_TIME = "its introduction says that it is not for several threads or processes"
_NO_ACID = "its introduction says that it gives no ACID guarantees"
_NO_COMPARE = "there is no way to write a document only if it is still the one that was read"
GAPS = (
    dict.fromkeys(LAST_WRITER_WINS, _NO_COMPARE)
    | dict.fromkeys(("S09", "S13", "S14", "S16", "W01", "W02", "W03", "W04"), _ONE_AT_A_TIME)
    | dict.fromkeys(("S10", "C03", "C04", "C05", "C06", "P01", "P02", "P03"), _NO_ACID)
)


class TinyStore(RecordStore):
    """A run is a document."""

    def __init__(self, path: str) -> None:
        from tinydb import TinyDB

        self._runs: Any = TinyDB(path)

    def read(self, run_id: str) -> Record | None:
        from tinydb import where

        found = self._runs.get(where("run_id") == run_id)
        return None if found is None else cast(Record, dict(found))

    def write(self, run_id: str, record: Record) -> None:
        from tinydb import where

        self._runs.upsert(record, where("run_id") == run_id)

    def remove(self, run_id: str) -> None:
        from tinydb import where

        self._runs.remove(where("run_id") == run_id)

    def close(self) -> None:
        self._runs.close()


def open_store(location: str) -> TinyStore:
    """Open the database in a file of the location."""
    return TinyStore(f"{location}/runs.json")
