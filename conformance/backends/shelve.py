"""shelve: a dict of pickled objects on a dbm file, from Python's standard library.

Used as its documentation shows (https://docs.python.org/3/library/shelve.html): opened, used and closed in a `with`
block, a block a call, with the dbm module that Python picks; before Python 3.13 that is dbm.dumb where the libraries of
the others are not there. The documentation says that a shelf must not be open for writing anywhere else at the same
time; the adapter therefore holds a lock of the process during a call. A key is the run's id.
"""

from __future__ import annotations

import threading
from typing import Any, cast

from . import LAST_WRITER_WINS
from .records import Record, RecordStore

PACKAGES = ()
SERVER = None
_ONE_AT_A_TIME = "its documentation says that it does not support concurrent access"
_NO_COMPARE = "a dict has no way to write a value only if it is still the one that was read"
_DISASTER = "the source of dbm.dumb says that a crash before the index is written is a disaster for the database"
GAPS = (
    dict.fromkeys(LAST_WRITER_WINS, _NO_COMPARE)
    | dict.fromkeys(("S13", "S16", "W01", "W02", "W03", "W04"), _ONE_AT_A_TIME)
    | dict.fromkeys(("C03", "C06"), _DISASTER)
    | dict.fromkeys(("P01", "P02", "P03"), "dbm.dumb never syncs its files, and nobody says that it does")
    | {"S10": "neither shelve nor dbm promises to find a changed byte"}
)


class ShelfStore(RecordStore):
    """A run is a value of the shelf."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()

    def read(self, run_id: str) -> Record | None:
        with self._lock, self._shelf() as shelf:
            return cast("Record | None", shelf.get(run_id))

    def write(self, run_id: str, record: Record) -> None:
        with self._lock, self._shelf() as shelf:
            shelf[run_id] = record

    def remove(self, run_id: str) -> None:
        with self._lock, self._shelf() as shelf:
            shelf.pop(run_id, None)

    def _shelf(self) -> Any:
        import shelve

        return shelve.open(self._path)


def open_store(location: str) -> ShelfStore:
    """Open the shelf in files of the location."""
    return ShelfStore(f"{location}/runs")
