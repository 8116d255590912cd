"""How many kill-and-resume scenarios a second the crash explorer judges, for three body agents on SQLite.

One scenario is a fresh store, a run killed by SIGKILL, a look at what is on disk, the resume to the end, one more
resume of the finished run, and the judgement. Fork server and fresh interpreters are measured in the same run.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from n00dles_testing.crash import explore

from .figure import Figure, alternated

__all__ = ["figures"]

TARGET = f"{Path(__file__).parents[2] / 'docs' / 'examples' / 'body.py'}:body_pipeline"
ROUNDS = 5


def figures() -> Iterator[Figure]:
    """Measure, and yield each figure as soon as it is known."""
    # One fork server lives two scenarios side by side where there are two processors; each alone for the comparison.
    alone, forked = alternated(ROUNDS, lambda: _rate("fork", workers=1), lambda: _rate("fork", workers=2))
    (spawned,) = alternated(1, lambda: _rate("spawn", workers=1))
    (in_process,) = alternated(3, lambda: _rate("in-process", workers=1))
    best = max(forked)
    yield Figure("scenarios, one fork server", best, "a second", _all(forked), at_least=40)
    detail = f"one at a time: {_all(alone)}; fresh: {_all(spawned)}"
    yield Figure("fork server", max(alone) / max(spawned), "× fresh processes", detail, at_least=10)
    yield Figure("scenarios, in-process", max(in_process), "a second", _all(in_process), at_least=best)


def _rate(mode: str, workers: int) -> float:
    report = explore(TARGET, {"text": "the cat and the dog"}, mode=mode, workers=workers)
    assert report.ok, report
    return len(report.rows) / report.scenario_seconds


def _all(rates: list[float]) -> str:
    return ", ".join(f"{rate:.1f}" for rate in rates) + " a second"
