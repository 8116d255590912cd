"""Who watches a check of a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..verdicts import ClauseResult
from .capabilities import Capability

__all__ = ["Nobody", "Progress"]


class Progress(Protocol):
    """Who watches a check of a store."""

    def started(self, clauses: Sequence[tuple[str, str]], note: str) -> None:
        """The store opens; these clauses (id and title) follow. `note` says what is done with the target."""

    def clause_started(self, clause: str) -> None:
        """A check begins."""

    def scenario(self, number: int, title: str) -> None:
        """A scenario of the check begins."""

    def clause_ended(self, result: ClauseResult) -> None:
        """A check has ended."""

    def probing(self, capability: str) -> None:
        """A capability is probed; all clauses have ended then."""

    def probed(self, capability: Capability) -> None:
        """A probe has ended."""


class Nobody(Progress):
    """Watches nothing."""
