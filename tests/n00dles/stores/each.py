"""Working on a fresh store of each kind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from n00dles import PipelineContext
from n00dles.stores import Closable

Factory = Callable[[], Any]


def on_store(work: Callable[[Any], Any], make_store: Factory) -> Any:
    async def main() -> Any:
        store = make_store()
        try:
            return await work(store)
        finally:
            if isinstance(store, Closable):
                await store.aclose()

    return asyncio.run(main())


def visible(ctx: PipelineContext) -> tuple[str, dict[str, Any]]:
    """Return what a store has to give back; the types of all values are in the text."""
    record = ctx.to_dict()
    del record["nodes"]
    return ctx.to_json().partition('"nodes"')[0], record
