"""An executor that begins each life as it was before the first: what it kept on itself is gone with its process."""

from __future__ import annotations

import copy
from typing import Any

from ..crash.life import Executor

__all__ = ["Reborn"]


class Reborn:
    """Calls a copy of an executor; `begin` makes a new one. `is_possible` says whether it can be copied at all."""

    def __init__(self, executor: Executor) -> None:
        self._now: Executor = executor
        try:
            self._before: Executor | None = copy.deepcopy(executor)
        except Exception:  # it has a lock, a connection, or whatever else there is one of
            self._before = None

    @property
    def is_possible(self) -> bool:
        """Whether what the executor keeps on itself is gone in the next life."""
        return self._before is not None

    def begin(self) -> None:
        """Begin a life in another process."""
        if self._before is not None:
            self._now = copy.deepcopy(self._before)

    @property
    def run(self) -> Any:
        """The method of the copy."""
        return self._now.run

    @property
    def resume(self) -> Any:
        """The method of the copy."""
        return self._now.resume
