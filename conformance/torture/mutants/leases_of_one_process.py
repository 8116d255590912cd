"""A store whose leases are known in one process only, like a lock in the memory of a worker.

Seen in: langchain-ai/langgraph #8136 (a guard that is one per instance).
"""

from __future__ import annotations

from n00dles.stores import sqlite_leases
from n00dles.stores.leases import LeaseTable

from ..flow import flow

__all__ = ["flow"]


class LeasesOfOneProcess(LeaseTable):
    """Takes the place of the file that all processes look at."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    def remove(self) -> None:
        """There is no file."""


sqlite_leases.LeaseFile = LeasesOfOneProcess  # type: ignore[assignment,misc]
