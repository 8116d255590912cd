"""Who watches a check of a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..verdicts import ClauseResult
from .capabilities import Capability

__all__ = ["Progress", "nobody"]


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


def nobody() -> Progress:
    """Return a watcher that does nothing."""
    return _Nobody()


class _Nobody:
    def started(self, clauses: Sequence[tuple[str, str]], note: str) -> None: ...

    def clause_started(self, clause: str) -> None: ...

    def scenario(self, number: int, title: str) -> None: ...

    def clause_ended(self, result: ClauseResult) -> None: ...

    def probing(self, capability: str) -> None: ...

    def probed(self, capability: Capability) -> None: ...
