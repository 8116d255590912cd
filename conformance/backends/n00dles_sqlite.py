"""n00dles SQLiteStateStore: the default, one file for the processes of one machine.

A store of this project, opened as its documentation shows (`docs/reference/n00dles.md`). The adapter adds nothing.
"""

from __future__ import annotations

from n00dles import SQLiteStateStore

PACKAGES = ("n00dles-testing",)
IS_OURS = True
SERVER = None
GAPS: dict[str, str] = {}


def open_store(location: str) -> SQLiteStateStore:
    """Open a database in the location."""
    return SQLiteStateStore(f"{location}/runs.db")
