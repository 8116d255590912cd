"""One of several processes that use a fresh location for the first time, all at the same moment."""

from __future__ import annotations

import time
from typing import Any

from .child import still_alive
from .pauses import pauses
from .records import Record
from .scenario import describe, where
from .target import StoreTarget

__all__ = ["use_first"]

_OUTPUTS = {"researcher": "facts"}


async def use_first(
    target: StoreTarget, location: str | None, *, run_id: str, common_id: str, at: float
) -> dict[str, Any]:
    """At the moment `at` of the monotonic clock, open the store, use it and close it.

    Creates and saves the run `run_id`, and creates or loads the run `common_id`, which all have in common. Returns when
    it began and ended, in `span`, and either the `record` of its own run, or what `raised`, in which `call`, at which
    line.
    """
    time.sleep(max(0.0, at - time.monotonic()))  # noqa: ASYNC251 - nothing else runs here, and a loop wakes up late
    began = time.monotonic()
    call = "open"
    try:
        with pauses():
            instance = await target.open(location)
            call = "load_or_create of its own run"
            context = instance.context(await instance.load_or_create(run_id, {"topic": "cats"}), run_id)
            call = "load_or_create of the common run"
            Record.read(await instance.load_or_create(common_id, {"topic": "of all"}))
        call = "save"
        still_alive()
        for node, output in _OUTPUTS.items():
            context.checkpoint(node, output)
        await instance.save(run_id, context)
        call = "load_or_create of its saved run"
        still_alive()
        record = Record.read(await instance.load_or_create(run_id, {"topic": "cats"}))
        ended = time.monotonic()
        call = "close"
        still_alive()
        await instance.close()
    except (Exception, SystemExit) as error:
        raised = describe(error)
        told = f"{call} raised {raised}"
        return {
            "told": told,
            "span": [began, time.monotonic()],
            "call": call,
            "raised": raised,
            "where": where(error),
        }
    return {"told": "all succeeded", "span": [began, ended], "record": record.to_dict()}
