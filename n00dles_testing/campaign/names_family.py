"""E08: two nodes of one name are refused when the pipeline is built; groups, branches and parts never collide with one.

A generated pipeline has one node renamed: to the name of another node, or to what n00dles calls a group, a branch, a
pipeline inside, or the whole. If it can be built all the same, it has to run, to be resumed, and to give what is due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from n00dles.errors import N00dlesError

from ..crash.history import same
from ..crash.typed import encode, show
from ..strategies import AttemptsInMemory, NodeSpec, PipelineSpec, build, counted_by, predict
from ..strategies.spec import StepSpec, step_name
from .changes import renamed
from .direct import Ended, ended, failing_at
from .family import Fault, Judgement, Trial
from .simpler import simpler
from .stage import RUN_ID, Stage
from .subjects import specs

__all__ = ["NamesFamily"]


class NamesFamily:
    """Scenarios of E08: `rest` is the node that is renamed, and the name that it gets."""

    name = "names"
    clauses = frozenset({"E08"})
    share = 0.04
    on_disk = False
    is_scouting = False

    def groups(self) -> st.SearchStrategy[Sequence[Trial]]:
        """Draw a pipeline, a node of it and a name that is taken."""
        return _groups()

    def judged(self, trials: Sequence[Trial], stage: Stage) -> Iterator[tuple[Trial, Judgement]]:
        """Build each, and run what can be built."""
        for trial in trials:
            yield trial, _judged(trial, stage)

    def is_sound(self, trial: Trial) -> bool:
        """Whether its node is one, and its name is taken."""
        node, name = trial.rest
        return node in {each.name for each in trial.spec.nodes()} and name in _taken(trial.spec, node)

    def plainer(self, trial: Trial) -> Iterator[Sequence[Trial]]:
        """Yield the same name in simpler pipelines."""
        node, name = trial.rest
        for less in simpler(trial.spec):
            if node in {each.name for each in less.nodes()} and name in _taken(less, node):
                yield [replace(trial, spec=less)]

    def told(self, trial: Trial) -> Mapping[str, Any]:
        """Return what was renamed."""
        node, name = trial.rest
        return {"names": f"node {node} is called {name}"}


@st.composite
def _groups(draw: st.DrawFn) -> Sequence[Trial]:
    spec = draw(specs(failures=False))
    # Whoever is read by name cannot be renamed alone, and the first node of each route and group is as good.
    found = [(node.name, name) for node in spec.nodes() for name in _taken(spec, node.name)]
    if not found:
        return []
    return [Trial(NamesFamily.name, spec, draw(st.sampled_from(found)))]


def _taken(spec: PipelineSpec, node: str) -> list[str]:
    others = [each.name for each in spec.nodes() if each.name != node]
    groups = [step_name(step) for step in _inner(spec.steps)]
    return list(dict.fromkeys([*others[:1], *groups, spec.name]))


def _inner(steps: tuple[StepSpec, ...]) -> Iterator[StepSpec]:
    for step in steps:
        if not isinstance(step, NodeSpec):
            yield step
            yield from _inner(step.members if hasattr(step, "members") else step.steps)


def _judged(trial: Trial, stage: Stage) -> Judgement:
    old, new = trial.rest
    spec = renamed(trial.spec, old, new)
    is_twin = new in {node.name for node in trial.spec.nodes()}
    try:
        build(spec)
    except (N00dlesError, ValueError) as error:
        if new not in str(error):
            fault: Fault = ("E08", f"the error of the build does not name {new!r}: {error}", "")
            return Judgement([fault], {"E08": 1})
        return Judgement((), {"E08": 1})
    if is_twin:
        return Judgement([("E08", f"a pipeline with two nodes called {new!r} was built", _WHY)], {"E08": 1})
    stage.count()
    whole, resumed = asyncio.run(_lived(spec, stage))
    story = (f"{'run':<9}{whole.told}", f"{'resumed':<9}{resumed.told}")
    due = due_to(spec)
    faults: list[Fault] = []
    for how, one in (("the run", whole), ("the run that was stopped and resumed", resumed)):
        if not one.ok:
            faults.append(("E08", f"{how} failed, in which a node is called {new!r}: {one.error}", _WHY))
        elif not same(one.output, due):
            message = f"{how}, in which a node is called {new!r}, returned {show(one.output)}, where {show(due)} is due"
            faults.append(("E08", message, _WHY))
    if faults and not all(
        one.ok and same(one.output, due_to(trial.spec)) for one in asyncio.run(_lived(trial.spec, stage))
    ):
        return Judgement(vacuous="the executor fails without a name that is taken, too")
    return Judgement(faults[:1], {"E08": 1}, lambda why: (*story, *([f"{'why':<9}{why}"] if why else [])))


def due_to(spec: PipelineSpec) -> Any:
    """Return what a run of `spec` has to give, as typed JSON."""
    return encode(predict(spec).output)


_WHY = "what is stored under one name is taken for the output of the other"


async def _lived(spec: PipelineSpec, stage: Stage) -> tuple[Ended, Ended]:
    """Run the pipeline, and run it once more so that its last node fails, and resume that."""
    told = predict(spec)
    last = list(told.calls)[-1]
    inputs = spec.input_values()
    with counted_by(AttemptsInMemory()):
        whole = await ended(stage.executor, build(spec), stage.make_store(), RUN_ID, inputs=inputs)
    with counted_by(AttemptsInMemory()):
        store = stage.make_store()
        await ended(stage.executor, build(spec), store, RUN_ID, inputs=inputs, body=failing_at(last))
        resumed = await ended(stage.executor, build(spec), store, RUN_ID)
    return whole, resumed
