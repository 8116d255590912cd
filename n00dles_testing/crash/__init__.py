"""The crash explorer: kill a pipeline at every crash point with a real SIGKILL, resume it, and judge what came of it.

    report = explore("docs/examples/content.py:content_pipeline", {"topic": "agentic search"})
    for row in report.rows:
        print(row.point.label, row.killed_by, row.on_disk, row.recalled, row.same_output)

Read `points` for where a process dies, `ledger` for how it is known what it did, `clauses` for what is asked of it.
"""

from __future__ import annotations

from .exploration import ExplorationError, ExplorationReport, ExplorationRow, Progress
from .explorer import explore
from .points import How, Plan, Point
from .recorded_store import SimulatedDeath
from .safety import CrashSafety

__all__ = [
    "CrashSafety",
    "ExplorationError",
    "ExplorationReport",
    "ExplorationRow",
    "How",
    "Plan",
    "Point",
    "Progress",
    "SimulatedDeath",
    "explore",
]
