"""A store that breaks W06: over a bad connection no call gets a wrong reply."""

from __future__ import annotations

from typing import Any, ClassVar

from .correct_valkey import ValkeyRuns

__all__ = ["KeepsALineThatWasLate"]

_SECONDS = 1.0
_BYTES_A_SECOND = 10_000_000
"""Even a busy server is faster, so that only what is lost or held up is late."""


class KeepsALineThatWasLate(ValkeyRuns):
    """Gives up a call whose reply does not come, and keeps the connection, since making another costs time.

    The reply comes after all, and is taken for that of the next call.
    """

    breaks: ClassVar[str | None] = "W06"

    def asked(self, *words: str) -> Any:
        """Wait for a second, and longer for the reply to a large record."""
        if self.line is not None:
            self.line[0].settimeout(_SECONDS + sum(map(len, words)) / _BYTES_A_SECOND)
        return super().asked(*words)

    def after_an_error(self, error: OSError) -> None:
        """Hang up, unless it was only late."""
        if not isinstance(error, TimeoutError) or self.line is None:
            self.close()
            return
        sent, _ = self.line
        self.line = sent, sent.makefile("rb")  # one that has timed out reads no more
