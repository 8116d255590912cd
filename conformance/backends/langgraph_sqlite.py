"""LangGraph's SqliteSaver: checkpoints in a SQLite file.

Used as its README shows (https://pypi.org/project/langgraph-checkpoint-sqlite/), by `SqliteSaver.from_conn_string`,
with its default settings; see `langgraph` for the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .langgraph import GAPS as OF_ALL
from .langgraph import SaverStore

PACKAGES = ("langgraph-checkpoint-sqlite", "langgraph-checkpoint")
SERVER = None
GAPS = OF_ALL | {
    "S07": "a late save into a deleted thread makes it anew, which a saver without revisions cannot tell",
    "S10": "neither LangGraph nor SQLite promises to find a changed byte",
    "C05": "a save that is made again overwrites what another has saved in between: a saver cannot compare",
    "P03": "neither speaks of a failed sync; SQLite takes it for done when a commit is made again",
    "S13": "a connection of SQLite must not be carried across a fork, as its documentation says",
}


@contextmanager
def open_store(location: str) -> Iterator[SaverStore]:
    """Open the saver on a file of the location."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    with SqliteSaver.from_conn_string(f"{location}/checkpoints.sqlite") as saver:
        yield SaverStore(saver)
