"""sqlitedict: a dict whose values are kept in a SQLite file.

Used as its README recommends (https://github.com/piskvorky/sqlitedict): opened as a dict, a value is set, and
`commit()` ends the transaction. Its docstring says that the data is only "guaranteed persisted" by a blocking commit,
which is the default. The adapter adds nothing: a run is one value, and the key is its id.
"""

from __future__ import annotations

from typing import Any, cast

from . import LAST_WRITER_WINS
from .records import Record, RecordStore

PACKAGES = ("sqlitedict",)
SERVER = None
_NO_COMPARE = "a dict has no way to write a value only if it is still the one that was read"
GAPS = dict.fromkeys(LAST_WRITER_WINS, _NO_COMPARE) | {
    "S10": "neither sqlitedict nor SQLite promises to find a changed byte",
    "S13": "its documentation promises threads, and says nothing of a fork, in which its thread is missing",
}


class SqliteDictStore(RecordStore):
    """A run is a value of the dict."""

    def __init__(self, path: str) -> None:
        from sqlitedict import SqliteDict

        self._runs: Any = SqliteDict(path)

    def read(self, run_id: str) -> Record | None:
        return cast("Record | None", self._runs.get(run_id))

    def write(self, run_id: str, record: Record) -> None:
        self._runs[run_id] = record
        self._runs.commit()

    def remove(self, run_id: str) -> None:
        if self._runs.pop(run_id, None) is not None:
            self._runs.commit()

    def close(self) -> None:
        self._runs.close()


def open_store(location: str) -> SqliteDictStore:
    """Open the dict in a file of the location."""
    return SqliteDictStore(f"{location}/runs.sqlite")
