"""What the savers of LangGraph have in common: a run is a thread, a save is its next checkpoint.

Used as the README of each saver shows (https://pypi.org/project/langgraph-checkpoint-sqlite/): `put` with a checkpoint
whose `channel_values` hold the state, `get_tuple` for the newest one of a thread, `delete_thread`. Ids, times and
versions of checkpoints come from LangGraph's own `empty_checkpoint` and `get_next_version`. The adapter adds nothing:
a saver has no way to write a checkpoint only if the newest one is still the one that was read.
"""

from __future__ import annotations

from typing import Any, cast

from . import LAST_WRITER_WINS
from .records import Record, RecordStore

__all__ = ["GAPS", "SaverStore"]

_NO_COMPARE = "a saver has no way to write a checkpoint only if the newest one is still the one that was read"
GAPS = dict.fromkeys(LAST_WRITER_WINS, _NO_COMPARE)


class SaverStore(RecordStore):
    """A run is the channel `run` of a thread."""

    def __init__(self, saver: Any) -> None:
        self._saver = saver

    def read(self, run_id: str) -> Record | None:
        newest = self._saver.get_tuple(_thread(run_id))
        return None if newest is None else cast(Record, newest.checkpoint["channel_values"]["run"])

    def write(self, run_id: str, record: Record) -> None:
        from langgraph.checkpoint.base import empty_checkpoint

        newest = self._saver.get_tuple(_thread(run_id))
        version = self._saver.get_next_version(newest and newest.checkpoint["channel_versions"]["run"], None)
        checkpoint = {**empty_checkpoint(), "channel_values": {"run": record}, "channel_versions": {"run": version}}
        under = newest.config if newest else _thread(run_id)
        self._saver.put(under, checkpoint, {"source": "update", "step": 0, "parents": {}}, {"run": version})

    def remove(self, run_id: str) -> None:
        self._saver.delete_thread(run_id)


def _thread(run_id: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": run_id, "checkpoint_ns": ""}}
