"""Stores that break W07: a lease has one holder at a time, and nobody waits for the dead."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from .correct_shared import SharedFiles

__all__ = ["ExpiresByTheWallClock", "LooksBeforeItLocks", "RenewsWhatIsAnothers", "WaitsForTheDead"]


class LooksBeforeItLocks(SharedFiles):
    """Sees that a run is free, and only then waits for its turn to write that it is held."""

    breaks: ClassVar[str | None] = "W07"

    def acquire(self, run_id: str, holder: str, ttl: float) -> Any:
        """Look, then write."""
        super().expect_free(run_id)
        time.sleep(0)
        return super().acquire(run_id, holder, ttl)

    def expect_free(self, run_id: str) -> None:
        """It was seen to be."""


class ExpiresByTheWallClock(SharedFiles):
    """Writes when a lease expires by the clock of the host that takes it, which is read by those of others."""

    breaks: ClassVar[str | None] = "W07"

    def now(self) -> float:
        """Return what the clock on the wall shows."""
        return time.time()


class WaitsForTheDead(SharedFiles):
    """Takes every holder for alive until its lease has expired: a worker that is restarted waits for itself."""

    breaks: ClassVar[str | None] = "W07"

    def lives(self, token: str) -> bool:
        """Hope so."""
        return True


class RenewsWhatIsAnothers(SharedFiles):
    """Renews whatever lease the run has: a holder that was stopped is told that it still holds the run."""

    breaks: ClassVar[str | None] = "W07"

    def is_of(self, held: dict[str, Any] | None, token: str) -> bool:
        """Do not compare."""
        return held is not None
