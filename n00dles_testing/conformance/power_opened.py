"""A store opened on what a disk held after a power loss: all its runs are loaded, and one is saved on.

It is called by an `Examiner`, in a process of its own, which is the first to open the store on these files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from .instance import Instance
from .power_workload import AFTERWARDS
from .records import Record
from .tracer import GetTarget

__all__ = ["OpenedStore"]

T = TypeVar("T")


class OpenedStore:
    """The store on one folder. What it loads is `{run id: record}`, in plain JSON types."""

    def __init__(self, target: GetTarget, folder: str, inputs: dict[str, dict[str, Any]]) -> None:
        """Open it; `inputs` are those of the runs."""
        self._inputs = inputs
        self._runner = asyncio.Runner()
        self._instance: Instance = self._await(target().open(folder))

    def load(self) -> dict[str, Any]:
        """Load all runs. Raises what the store raises, and `UnreadableReplyError`."""
        return {run_id: Record.read(self._await(self._load(run_id))).to_dict() for run_id in self._inputs}

    def save(self, _: int) -> None:
        """Load the runs and save them on, each with a further node."""
        for run_id in self._inputs:
            context = self._instance.context(self._await(self._load(run_id)), run_id)
            for node, output in AFTERWARDS.items():
                context.checkpoint(node, output)
            self._await(self._instance.save(run_id, context))

    def close(self) -> None:
        """Close it, and the event loop."""
        try:
            self._await(self._instance.close())
        finally:
            self._runner.close()

    def _load(self, run_id: str) -> Awaitable[Any]:
        return self._instance.load_or_create(run_id, dict(self._inputs[run_id]))

    def _await(self, awaited: Awaitable[T]) -> T:
        async def run() -> T:
            return await awaited

        return self._runner.run(run())
