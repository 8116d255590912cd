"""How many kill-and-resume scenarios a second the crash explorer judges, for three body agents on SQLite.

One scenario is a fresh store, a run killed by SIGKILL, a look at what is on disk, the resume to the end, one more
resume of the finished run, and the judgement. Fork server and fresh interpreters are measured in the same run. So is
the inner loop, in which a campaign plays generated pipelines: three async nodes, on memory, in this process.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from n00dles import Agent, Pipeline, agent, pipeline
from n00dles_testing.crash import explore
from n00dles_testing.crash.clauses import JUDGED
from n00dles_testing.crash.inner_loop import InnerLoop
from n00dles_testing.crash.life import ReferenceExecutor
from n00dles_testing.crash.points import How

from .figure import Figure, alternated, ratio

__all__ = ["figures"]

TARGET = f"{Path(__file__).parents[2] / 'docs' / 'examples' / 'body.py'}:body_pipeline"
LONG = f"{Path(__file__)}:long_pipeline"
LONG_NODES = 25
"""With few scenarios, much of what two workers take is their start, and the last one, which has no neighbour."""
ROUNDS = 5
PASSES = 20
"""How often the inner loop plays each plan in a round."""


def figures() -> Iterator[Figure]:
    """Measure, and yield each figure as soon as it is known."""
    # One fork server lives two scenarios side by side where there are two processors; each alone for the comparison.
    alone, forked = alternated(ROUNDS, lambda: _rate("fork", workers=1), lambda: _rate("fork", workers=2))
    (spawned,) = alternated(1, lambda: _rate("spawn", workers=1))
    (in_process,) = alternated(3, lambda: _rate("in-process", workers=1))
    best = max(forked)
    yield Figure("scenarios, one fork server", best, "a second", _all(forked), at_least=40)
    one, two = alternated(
        3, lambda: _rate("fork", workers=1, target=LONG), lambda: _rate("fork", workers=2, target=LONG)
    )
    detail = f"{LONG_NODES} nodes: {_all(two)} against {_all(one)}"
    yield Figure("explore --workers 2", ratio(two, one), "× one worker", detail, at_least=1.8)
    detail = f"one at a time: {_all(alone)}; fresh: {_all(spawned)}"
    yield Figure("fork server", max(alone) / max(spawned), "× fresh processes", detail, at_least=10)
    yield Figure("scenarios, in-process", max(in_process), "a second", _all(in_process), at_least=best)
    (inner,) = alternated(ROUNDS, _inner_rate)
    yield Figure("scenarios, inner loop", max(inner), "a second", _all(inner), at_least=400)


def _rate(mode: str, workers: int, target: str = TARGET) -> float:
    report = explore(target, {"text": "the cat and the dog"}, mode=mode, workers=workers)
    assert report.ok, report
    return len(report.rows) / report.scenario_seconds


def _inner_rate() -> float:
    """Return how many kills of a small pipeline are lived and judged a second, without files and in one process."""
    loop = InnerLoop(_small, ReferenceExecutor(), {"text": "the cat"})
    plans = [(point,) for point in loop.points((How.KILL,))]
    started = time.perf_counter()
    for _ in range(PASSES):
        for plan in plans:
            case = loop.case(plan)
            assert not loop.vacuous(case, plan), plan
            assert not [fault for clause in JUDGED for fault in clause.faults(case)], plan
    return PASSES * len(plans) / (time.perf_counter() - started)


@agent
async def _split(text: str) -> list[str]:
    return text.split()


@agent
async def _count(words: list[str]) -> dict[str, int]:
    return {"words": len(words)}


@agent
async def _tell(counts: dict[str, int]) -> str:
    return f"{counts['words']} words"


_small = pipeline(_split >> _count >> _tell, name="small")


def _numbered(number: int) -> Agent:
    def node(text: str) -> str:
        return f"{text} {number}"

    node.__name__ = f"n{number}"
    return Agent(node)


long_pipeline = Pipeline([_numbered(number) for number in range(LONG_NODES)], name="long")


def _all(rates: list[float]) -> str:
    return ", ".join(f"{rate:.1f}" for rate in rates) + " a second"
