"""A run of nothing much, before the first fork: what Python prepares at the first use is then prepared once, for all.

Interpreter caches, lazy imports and memory pages that a child does not have to make its own are a fifth of the cost of
a life. Nothing of it is the user's, and nothing is left open.
"""

from __future__ import annotations

from contextlib import closing

from n00dles.agent import agent
from n00dles.pipeline import pipeline

from ..temporary_folder import TemporaryFolder
from .in_process import InProcess
from .life import ReferenceExecutor
from .points import Kind, Point
from .scenario import PlannedRun

__all__ = ["rehearse"]


@agent
def _first(text: str) -> str:
    return text


@agent
async def _second(text: str) -> dict[str, str]:
    return {"text": text}


def rehearse() -> None:
    """Live one scenario in this process, on SQLite in a folder that is removed again."""
    with TemporaryFolder("n00dles-rehearsal-") as folder:
        scenario = PlannedRun(
            id="rehearsal",
            run_id="rehearsal",
            inputs={"text": "x"},
            store=f"sqlite:///{folder.path}/run.db",
            location=str(folder.path),
            ledger=str(folder.path / "ledger"),
            plan=(Point(Kind.AFTER_SAVE, "_first"),),
        )
        with closing(InProcess(pipeline(_first >> _second), ReferenceExecutor())) as backend:
            for _ in backend.play([scenario]):
                pass
