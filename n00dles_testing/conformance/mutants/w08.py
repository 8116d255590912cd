"""Stores that break W08: nothing is held while a node runs."""

from __future__ import annotations

from typing import Any, ClassVar

from .correct import JSONFiles

__all__ = ["HoldsAConnectionForEachRun"]

_POOL = 50


class PoolError(Exception):
    """No connection has become free."""

    def __init__(self) -> None:
        super().__init__(f"pool of {_POOL} connections: all are in use, and none became free in time")


class HoldsAConnectionForEachRun(JSONFiles):
    """Takes a connection from its pool when a run begins, and gives it back with the run's first save.

    Nobody has seen that in tests, where a node takes no time; in production it is the number of nodes that can run.
    """

    breaks: ClassVar[str | None] = "W08"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.in_use: set[str] = set()

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Read the run's file, or write it, through a connection of its own."""
        if run_id not in self.in_use and self.read(run_id) is None:
            if len(self.in_use) >= _POOL:
                raise PoolError
            self.in_use.add(run_id)
        return super().load_or_create(run_id, inputs)

    def save(self, run_id: str, context: Any) -> None:
        """Replace the run's file, and give the connection back."""
        super().save(run_id, context)
        self.in_use.discard(run_id)

    def delete(self, run_id: str) -> None:
        """Remove the run's file, and give the connection back."""
        super().delete(run_id)
        self.in_use.discard(run_id)
