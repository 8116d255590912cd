"""Scenarios in this process, on a store in memory, without a file: for whoever plays thousands of them.

    loop = InnerLoop(pipeline, ReferenceExecutor(), {"text": "x"})
    plan = (Point.parse("after:a"), Point.parse("cancel@before-save:b"))
    case = loop.case(plan)
    if not loop.vacuous(case, plan):
        faults = [fault for clause in CLAUSES for fault in clause.check(case)]

What is found here is weaker than what a killed process shows (see `in_process`): confirm it with `explore(plans=…)`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from n00dles.context import stored_inputs
from n00dles.pipeline import Pipeline
from n00dles.stores.base import StateStore
from n00dles.stores.memory import InMemoryStateStore

from .assessment import not_disturbed
from .case import Baseline, Case
from .history import History
from .in_process import InProcess
from .life import Executor
from .points import How, Plan, Point
from .scenario import PlannedRun
from .shape import Shape
from .undisturbed import middles, ways_to_disturb

__all__ = ["InnerLoop"]


class InnerLoop:
    """Plays plans of one pipeline with one executor and the same inputs; each has a store of its own.

    `make_store` gives the store of one scenario, by default one in memory. `time_limit` is seconds a life.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        executor: Executor,
        inputs: Mapping[str, Any],
        *,
        make_store: Callable[[], StateStore] = InMemoryStateStore,
        time_limit: float = 5.0,
    ) -> None:
        self._backend = InProcess(pipeline, executor, make_store=make_store)
        self._inputs = stored_inputs(inputs)
        self._time_limit = time_limit
        self._numbers = itertools.count(1)

    @cached_property
    def baseline(self) -> Baseline:
        """What the pipeline does undisturbed, from one run of it; it need not end well."""
        needs = {name: node["needs"] for name, node in self._backend.description["nodes"].items()}
        return Baseline(self._history((), record=True), [], needs, Shape.of(self._backend.description))

    def case(self, plan: Plan) -> Case:
        """Play `plan` to the end of the run, and return what there is to judge."""
        baseline = self.baseline
        return Case(self._history(plan), baseline)

    def points(self, hows: Sequence[How] = (How.KILL,)) -> list[Point]:
        """Return where the run can be disturbed, as `hows` say."""
        return ways_to_disturb(self.baseline.history, 1, hows, self._lines)

    def vacuous(self, case: Case, plan: Plan) -> str:
        """Say why a case shows nothing, if so: one of its lives was not disturbed as planned."""
        return not_disturbed(case.history, plan)

    @cached_property
    def _lines(self) -> dict[str, int]:
        return middles(self.baseline.history)

    def close(self) -> None:
        """Close the event loop that lives share."""
        self._backend.close()

    def _history(self, plan: Plan, *, record: bool = False) -> History:
        scenario = PlannedRun(
            id=str(next(self._numbers)),
            run_id="crash",
            inputs=self._inputs,
            store="memory://",
            location="",
            ledger="",
            plan=plan,
            lines={} if record else self._lines,
            record=record,
            time_limit=self._time_limit,
        )
        ((_, ends),) = self._backend.play([scenario])
        return History(self._backend.entries(scenario), ends)
