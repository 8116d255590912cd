"""A store whose save takes many steps, each of which leaves a file: so it is seen how far it has come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from n00dles_testing.conformance.mutants.correct import JSONFiles

__all__ = ["STEPS", "LeavesAFileForEachStep", "steps_done"]

STEPS = 200


class LeavesAFileForEachStep(JSONFiles):
    """Correct, but for the files."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.saves = 0

    def save(self, run_id: str, context: Any) -> None:
        self.saves += 1
        for number in range(STEPS):
            (self.folder / f"{self.saves}-{number}.step").touch()
        super().save(run_id, context)


def steps_done(location: str) -> int:
    """Count the files, and remove them."""
    steps = list(Path(location).glob("*.step"))
    for step in steps:
        step.unlink()
    return len(steps)
