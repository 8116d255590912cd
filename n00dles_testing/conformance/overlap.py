"""Saves of one run that are under way at the same time, and the proof that they were."""

from __future__ import annotations

import asyncio
import itertools
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .expect import VacuousCheck
from .in_threads import in_threads
from .instance import Instance
from .scenario import Handle, Scenario, describe

__all__ = ["Overlap", "many_switches", "save_in_one_loop", "save_in_threads"]

_SWITCH_SECONDS = 1e-6
_TIME_TO_MEET = 10.0


@dataclass(slots=True)
class Overlap:
    """What came of saves that began together: the outputs that were acknowledged, and when each call was under way."""

    acknowledged: dict[str, Any] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    spans: list[tuple[float, float]] = field(default_factory=list)

    @property
    def is_proven(self) -> bool:
        """Whether a call began while another one had not returned."""
        spans = sorted(self.spans)
        return any(later[0] < earlier[1] for earlier, later in itertools.pairwise(spans))


async def save_in_one_loop(s: Scenario, saves: Sequence[tuple[Handle, str, Any]]) -> Overlap:
    """Begin to save each node through its handle, all in this event loop; return when all have ended."""
    overlap = Overlap()

    async def save(handle: Handle, node: str, output: Any) -> None:
        started = time.perf_counter()
        is_taken = await s.late_save(handle, {node: output})
        overlap.spans.append((started, time.perf_counter()))
        if is_taken:
            overlap.acknowledged[node] = output
        else:
            overlap.refused.append(node)

    ends = await asyncio.gather(*(save(*each) for each in saves), return_exceptions=True)
    for end in ends:
        if isinstance(end, BaseException):
            raise end
    return overlap


async def save_in_threads(s: Scenario, instance: Instance, saves: Sequence[tuple[Handle, str, Any]]) -> Overlap:
    """The same, each save in a thread and an event loop of its own: for stores whose saves give way to no other.

    Raises `VacuousCheck` if a thread did not come as far as its save, or not behind it: that is not the store's doing.
    """
    overlap = Overlap()
    barrier = threading.Barrier(len(saves), timeout=_TIME_TO_MEET)

    async def save(handle: Handle, node: str, output: Any) -> None:
        started = time.perf_counter()
        try:
            await instance.save(handle.run_id, handle.context)
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            overlap.refused.append(f"{node}: {describe(error)}")
            return
        finally:
            overlap.spans.append((started, time.perf_counter()))
        overlap.acknowledged[node] = output

    def work(handle: Handle, node: str, output: Any) -> None:
        barrier.wait()
        handle.context.checkpoint(node, output)
        asyncio.run(save(handle, node, output))

    s.tell(f"save({saves[0][0].run_id!r}) in {len(saves)} threads, of {', '.join(node for _, node, _ in saves)}")
    with many_switches():
        _, raised = await in_threads([partial(work, *each) for each in saves])
    s.tell(f"acknowledged: {', '.join(sorted(overlap.acknowledged)) or 'none'}; refused: {len(overlap.refused)}")
    if raised or len(overlap.spans) < len(saves):
        why = "; ".join(raised) or "they have ended without"
        raise VacuousCheck(
            f"{len(overlap.spans)} of {len(saves)} threads have saved, and it was not the store that kept the others "
            f"from it ({why}), so nothing was shown"
        )
    return overlap


@contextmanager
def many_switches() -> Iterator[None]:
    """Have Python switch threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
