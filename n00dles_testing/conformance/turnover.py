"""Live traffic beside a prune: runs that are finished, deleted and begun anew under the same id, in another process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from .child import still_alive
from .instance import Instance
from .records import Record
from .scenario import describe
from .target import StoreTarget

__all__ = ["FIRST", "SECOND", "finish_and_begin_again"]

FIRST, SECOND = {"life": "first"}, {"life": "second"}
"""The inputs of a run in its two lives."""
_NODE = "begun-anew"
_SHADES = 4
"""So many lengths of the pause after a run has finished, the shortest of which is none."""


async def finish_and_begin_again(
    target: StoreTarget, location: str | None, *, run_ids: Sequence[str], seconds: float, pause: float
) -> dict[str, Any]:
    """Finish each run, delete it, begin it anew, and save that; then look whether all of those are still there.

    A finished run is left alone for `pause` seconds at most, for each run a different part of that. Stops after so many
    `seconds`. Returns how many were `done`, which were `lost` and how, and when it `began` and
    `ended`, by the monotonic clock of the host.
    """
    instance = await target.open(location)
    began, lost, done = time.monotonic(), list[str](), list[str]()
    try:
        for number, run_id in enumerate(run_ids):
            if done and time.monotonic() > began + seconds:
                break
            done.append(run_id)
            try:
                await _turn_over(instance, run_id, pause * (number % _SHADES) / (_SHADES - 1))
            except Exception as error:
                lost.append(f"a call on run {run_id!r}, which was not finished, raised {describe(error)}")
        ended = time.monotonic()
        for run_id in [] if lost else done:
            still_alive()
            record = Record.read(await instance.load_or_create(run_id, FIRST))
            if record != Record.new(SECOND).after({_NODE: run_id}):
                lost.append(f"run {run_id!r} was begun anew, saved and not finished, and is now {record}")
    finally:
        await instance.close()
    told = f"{len(done)} runs finished and begun anew, {len(lost)} lost"
    return {"told": told, "done": len(done), "lost": lost, "began": began, "ended": ended}


async def _turn_over(instance: Instance, run_id: str, pause: float) -> None:
    for inputs, node, status in ((FIRST, "done", "finished"), (SECOND, _NODE, "running")):
        context = instance.context(await instance.load_or_create(run_id, inputs), run_id)
        still_alive()
        context.checkpoint(node, run_id)
        context.status = status  # type: ignore[assignment]
        await instance.save(run_id, context)
        still_alive()
        if status == "finished":
            if pause:
                await asyncio.sleep(pause)
            await instance.delete(run_id)
            still_alive()
