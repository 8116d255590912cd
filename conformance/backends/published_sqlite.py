"""get-n00dles SQLiteStateStore: the default store of the published release.

Used as its documentation shows (https://docs.n00dles.com, and the docstring "zero config"): made with a path. It has
the three methods already. The adapter hands it the release's own context, with the four fields that this one has, so
that the record is the one that the release itself would write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from n00dles import PipelineContext

from . import LAST_WRITER_WINS, SQLITE_AS_IT_COMES
from .published import published

PACKAGES = ()
PUBLISHED_APART = ("get-n00dles",)
SERVER = None
_LAST_WRITER = "a record of this release has no revision, and the last writer wins"
GAPS = SQLITE_AS_IT_COMES | dict.fromkeys((*LAST_WRITER_WINS, "C05"), _LAST_WRITER)


class PublishedStore:
    """The published store; what it is given to save is of its own kind."""

    def __init__(self, store: Any) -> None:
        self._store = store

    async def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> Any:
        return await self._store.load_or_create(run_id, dict(inputs))

    async def load(self, run_id: str) -> Any:
        return await self._store.load(run_id)

    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        own = published().PipelineContext(run_id, ctx.inputs, dict(ctx.completed), ctx.order)
        await self._store.save(run_id, own)

    async def delete(self, run_id: str) -> None:
        await self._store.delete(run_id)


def open_store(location: str) -> PublishedStore:
    """Open the store on a file of the location."""
    return PublishedStore(published().SQLiteStateStore(f"{location}/n00dles_state.db"))
