"""The crash explorer: kill a pipeline at every crash point with a real SIGKILL, resume it, and judge what came of it.

    report = explore("docs/examples/content.py:content_pipeline", {"topic": "agentic search"})
    for row in report.rows:
        print(row.point.label, row.killed_by, row.on_disk, row.recalled, row.same_output)

Read `points` for where a process dies, `ledger` for how it is known what it did, `clauses` for what is asked of it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

# Whoever needs one module of this package, as the children and the conformance suite do, does not wait for all.
_HOMES = {
    "CrashSafety": "safety",
    "ExplorationError": "exploration",
    "ExplorationReport": "exploration",
    "ExplorationRow": "exploration",
    "How": "points",
    "Plan": "points",
    "Point": "points",
    "Progress": "exploration",
    "SimulatedDeath": "recorded_store",
    "explore": "explorer",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
