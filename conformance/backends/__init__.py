"""Stores that others have published, each behind the three methods of a state store, and our own: one file a subject.

A module here names what is installed (`PACKAGES`, the first one is the subject), which server it needs (`SERVER`) and
which files of a package that server loads (`SERVER_MODULES`), what the subject neither promises nor gives an adapter to
build on (`GAPS`: clause and reason), and has the factory `open_store`. It imports its package only when the store is
opened; the stores of this project say `IS_OURS`. `make field-trial` checks them all.
"""

from __future__ import annotations

__all__ = ["LAST_WRITER_WINS", "SQLITE_AS_IT_COMES"]

LAST_WRITER_WINS = ("S07", "S08", "S09", "S17", "W02", "W03", "W04", "W08")
"""What a store breaks that cannot write a record only if it is still the one that was read, of two workers on a run."""
SQLITE_AS_IT_COMES = {
    "S07": "SQLite leaves the text of what is deleted in its files until it is written over",
    "S10": "neither it nor SQLite promises to find a changed byte",
    "P02": "with its default settings SQLite may roll back the last commit after a power loss, as its pages say",
    "P03": "the same holds after a failed sync",
}
"""What a store on SQLite breaks that leaves the settings of SQLite as they are."""
