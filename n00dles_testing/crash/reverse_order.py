"""Other orders of completion: in every even life, members of a fan-out return in the reverse order of their listing.

What a run gives must not depend on which member is faster; without this the same one would be, in every life.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Mapping

from n00dles.pipeline import Parallel, Pipeline, Step

__all__ = ["ReverseOrder"]

_TURNS = 10
"""How many turns of the event loop a member gives those behind it to be called."""
_CALL_SECONDS = 0.02
"""The same in a thread."""
_MOST_SECONDS = 0.02
"""How long it waits for those that are being called to return: a node may have a time limit."""
_LOOK_SECONDS = 0.0005


class ReverseOrder:
    """Has a call of a member that could return wait a little for the members behind it. `calling` see `Trigger`."""

    def __init__(self, pipeline: Pipeline, calling: Mapping[str, int]) -> None:
        self._calling = calling
        self._behind = _behind(pipeline)
        self._called: Counter[str] = Counter()

    def enters(self, node: str) -> None:
        """Note that a call of `node` begins."""
        self._called[node] += 1

    async def wait(self, node: str) -> None:
        """Wait in the event loop."""
        behind = self._behind.get(node)
        if not behind:
            return
        for _ in range(_TURNS):
            if self._are_called(behind):
                break
            await asyncio.sleep(0)
        ends = time.monotonic() + _MOST_SECONDS
        while self._are_running(behind) and time.monotonic() < ends:  # noqa: ASYNC110 - threads set no event
            await asyncio.sleep(_LOOK_SECONDS)

    def wait_in_thread(self, node: str) -> None:
        """Wait in the thread of a body; one that is called in the thread of the event loop must not."""
        behind = self._behind.get(node)
        if not behind or _is_in_event_loop():
            return
        ends = time.monotonic() + _CALL_SECONDS
        while not self._are_called(behind) and time.monotonic() < ends:
            time.sleep(_LOOK_SECONDS)
        ends = time.monotonic() + _MOST_SECONDS
        while self._are_running(behind) and time.monotonic() < ends:
            time.sleep(_LOOK_SECONDS)

    def _are_called(self, members: tuple[tuple[str, ...], ...]) -> bool:
        return all(any(self._called[node] for node in nodes) for nodes in members)

    def _are_running(self, members: tuple[tuple[str, ...], ...]) -> bool:
        return any(self._calling[node] > 0 for nodes in members for node in nodes)


def _is_in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _behind(pipeline: Pipeline) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Return, for each node of a fan-out, the nodes of each member that is listed behind its own."""
    found: dict[str, tuple[tuple[str, ...], ...]] = {}
    for group in _groups(pipeline):
        members = [tuple(agent.name for agent in member.agents()) for member in group.members]
        for place, nodes in enumerate(members):
            for node in nodes:
                found[node] = (*found.get(node, ()), *members[place + 1 :])
    return found


def _groups(step: Step) -> Iterator[Parallel]:
    if isinstance(step, Parallel) and step.max_concurrency != 1:  # else nobody else can run while one waits
        yield step
    for child in step.children:
        yield from _groups(child)
