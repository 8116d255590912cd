"""What a save costs: measured in a process of its own, by the bytes that it writes and by the time that it takes."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

from n00dles.context import PipelineContext

from .child import still_alive
from .instance import Instance
from .target import StoreTarget

__all__ = ["cost_of_saves"]

_COUNTERS = Path("/proc/self/io")
_WARM_UP = 2
_OUTPUT = "facts about cats " * 12


async def cost_of_saves(
    target: StoreTarget,
    location: str | None,
    *,
    runs: dict[str, int],
    fewest: int,
    most: int,
    seconds: float,
    longest: float,
) -> dict[str, Any]:
    """Create runs with so many nodes each (by their ids), and save one more node of each in turn, `most` times.

    The runs take turns, so that whatever else the machine does meets all alike. After `seconds` no further turn begins
    if there were `fewest`, after `longest` none in any case.
    Returns for each run the medians of a save: `bytes` written (None where the system does not tell) and `seconds`; and
    `turns`, how many saves of each run stand behind them.
    """
    instance = await target.open(location)
    try:
        contexts = {run_id: await _begun(instance, run_id, nodes) for run_id, nodes in runs.items()}
        for number in range(_WARM_UP):
            for run_id, context in contexts.items():
                await _one_more(instance, run_id, context, f"warm{number}")
                still_alive()
        spent: dict[str, list[float]] = {run_id: [] for run_id in runs}
        written: dict[str, list[int]] = {run_id: [] for run_id in runs}
        started = time.monotonic()
        turns = 0
        while turns < most and time.monotonic() - started < (longest if turns < fewest else seconds):
            for run_id, context in contexts.items():
                before, began = _bytes_written(), time.perf_counter()
                await _one_more(instance, run_id, context, f"more{turns:03}")
                spent[run_id].append(time.perf_counter() - began)
                written[run_id].append((_bytes_written() or 0) - (before or 0))
                still_alive()
            turns += 1
    finally:
        await instance.close()
    is_told = _bytes_written() is not None
    if not turns:
        return {"turns": 0}
    return {
        "turns": turns,
        "bytes": {run_id: statistics.median(each) if is_told else None for run_id, each in written.items()},
        "seconds": {run_id: statistics.median(each) for run_id, each in spent.items()},
    }


async def _begun(instance: Instance, run_id: str, nodes: int) -> PipelineContext:
    """Create a run, and complete its nodes with one save."""
    context = instance.context(await instance.load_or_create(run_id, {"topic": "cats"}), run_id)
    still_alive()
    for number in range(nodes):
        context.checkpoint(f"node{number:03}", f"{number:03} {_OUTPUT}")
    await instance.save(run_id, context)
    still_alive()
    return context


async def _one_more(instance: Instance, run_id: str, context: PipelineContext, node: str) -> None:
    context.checkpoint(node, f"{node} {_OUTPUT}")
    await instance.save(run_id, context)


def _bytes_written() -> int | None:
    """Return how many bytes this process has handed to the system for writing, None where that is not told."""
    try:
        lines = _COUNTERS.read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("wchar:"))
    except (OSError, StopIteration, ValueError):
        return None
