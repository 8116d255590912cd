"""What lies around a location: a store that turns a run's id into a path may write there."""

from __future__ import annotations

import os
from pathlib import Path

from .scenario import Scenario

__all__ = ["Surroundings"]

_LEVELS = 2
"""The folders of the suite that a location lies in: up to here a path with `..` is harmless, and seen."""

_FOLDER = (-1, -1)


class Surroundings:
    """All files and folders around the location of a scenario, but not in it, as they were when this was made."""

    def __init__(self, scenario: Scenario) -> None:
        """Take a scenario that has a location."""
        assert scenario.location is not None
        self.location = Path(scenario.location)
        self.root = self.location.parents[_LEVELS - 1]
        self._scenario = scenario
        self._before = self._all()

    def expect_untouched(self, *, because: str) -> None:
        """Raise `BrokenClause` if anything was made, changed or removed there."""
        __tracebackhide__ = True
        now = self._all()
        touched = sorted(path for path in now.keys() | self._before.keys() if now.get(path) != self._before.get(path))
        self._before = now
        shown = [os.path.relpath(path, self.location) for path in touched]
        self._scenario.expect(shown).equals([], what="what the store has touched outside its location", because=because)

    def _all(self) -> dict[str, tuple[int, int]]:
        """Return size and time of each file; a folder is only there or not."""
        found: dict[str, tuple[int, int]] = {}
        for folder, folders, files in os.walk(self.root):
            folders[:] = [name for name in folders if Path(folder, name) != self.location]
            found.update((os.path.join(folder, name), _FOLDER) for name in folders)
            for name in files:
                path = os.path.join(folder, name)
                status = os.lstat(path)
                found[path] = (status.st_size, status.st_mtime_ns)
        return found
