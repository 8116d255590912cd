"""LangGraph's InMemorySaver: checkpoints in the memory of the process.

Used as its docstring shows (https://reference.langchain.com/python/langgraph/checkpoints/): made without arguments;
see `langgraph` for the rest.
"""

from __future__ import annotations

from .langgraph import GAPS as OF_ALL
from .langgraph import SaverStore

PACKAGES = ("langgraph-checkpoint",)
SERVER = None
GAPS = OF_ALL


def open_store() -> SaverStore:
    """Open an empty saver."""
    from langgraph.checkpoint.memory import InMemorySaver

    return SaverStore(InMemorySaver())
