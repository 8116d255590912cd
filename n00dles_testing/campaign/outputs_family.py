"""E15: an output that cannot be stored fails its node, naming node and path, before anything downstream runs.

One node of a generated pipeline returns, once, what JSON cannot hold: deep in a list, as a key, as a number. The run
has to fail at that node; then the node is well again, and the run has to be resumed and to give what is due.
"""

from __future__ import annotations

import asyncio
import datetime
import decimal
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from ..crash.dependencies import dependencies
from ..crash.history import same
from ..crash.typed import encode, show
from ..strategies import AttemptsInMemory, NodeSpec, PipelineSpec, build, counted_by, predict
from .changes import mapped
from .direct import Body, Ended, ended, failing_at
from .family import Fault, Judgement, Trial
from .simpler import simpler
from .stage import RUN_ID, Stage
from .subjects import specs

__all__ = ["OutputsFamily"]

VALUES: dict[str, tuple[Callable[[], Any], str]] = {
    "a set": (lambda: {"facts": {"a", "b"}}, "facts"),
    "bytes": (lambda: ["a", b"\xff"], "1"),
    "NaN": (lambda: {"score": float("nan")}, "score"),
    "infinity": (lambda: [[float("inf")]], "0"),
    "a key that is no text": (lambda: {1: "a", "1": "b"}, "1"),
    "a lone surrogate": (lambda: {"text": "\udc81"}, "text"),
    "an object": (lambda: {"parts": [object()]}, "parts"),
    "a complex number": (lambda: [1j], "0"),
    "a tuple": (lambda: {"pair": (1, 2)}, "pair"),
    "a datetime": (lambda: {"due": datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC)}, "due"),
    "a decimal": (lambda: {"total": decimal.Decimal("1.10")}, "total"),
    "a UUID": (lambda: {"key": uuid.UUID(int=1)}, "key"),
}
"""What JSON cannot hold so that the same comes back: how to make it, and a part of the path where it is."""


class OutputsFamily:
    """Scenarios of E15: `rest` is the node, and the name of what it returns."""

    name = "outputs"
    clauses = frozenset({"E15"})
    share = 0.04
    on_disk = False
    is_scouting = False

    def groups(self) -> st.SearchStrategy[Sequence[Trial]]:
        """Draw a pipeline, one of its nodes that has a body, and a value."""
        return _groups()

    def judged(self, trials: Sequence[Trial], stage: Stage) -> Iterator[tuple[Trial, Judgement]]:
        """Run each with the value, and resume it without."""
        for trial in trials:
            yield trial, _judged(trial, stage)

    def is_sound(self, trial: Trial) -> bool:
        """Whether its node is one that is called, and its value is known."""
        node, value = trial.rest
        return node in predict(trial.spec).calls and value in VALUES

    def plainer(self, trial: Trial) -> Iterator[Sequence[Trial]]:
        """Yield the same value in simpler pipelines."""
        for less in simpler(trial.spec):
            if trial.rest[0] in predict(less).calls:
                yield [replace(trial, spec=less)]

    def told(self, trial: Trial) -> Mapping[str, Any]:
        """Return what was returned, and by whom."""
        node, value = trial.rest
        return {"output": f"{node} returns {value}"}


@st.composite
def _groups(draw: st.DrawFn) -> Sequence[Trial]:
    spec = draw(specs(failures=False))
    called = predict(spec).calls
    bodies = [node.name for node in spec.nodes() if node.name in called and not node.is_model]
    if not bodies:
        return []
    name = draw(st.sampled_from(bodies))
    value = draw(st.sampled_from(list(VALUES)))
    return [Trial(OutputsFamily.name, _undeclared(spec, name), (name, value))]


def _undeclared(spec: PipelineSpec, name: str) -> PipelineSpec:
    """Return `spec` with a node that declares nothing, so that what it returns is not refused for its type."""

    def node(each: NodeSpec) -> NodeSpec:
        return replace(each, is_annotated=False, fallback=None, fails=0) if each.name == name else each

    return replace(spec, steps=mapped(spec.steps, node))


def _judged(trial: Trial, stage: Stage) -> Judgement:
    node, value = trial.rest
    stage.count()
    first, second = asyncio.run(_lived(trial.spec, _returning(node, VALUES[value][0]), stage))
    story = (f"{'life 1':<9}{first.told}", f"{'life 2':<9}{second.told}")
    if node not in first.calls:
        return Judgement(vacuous=f"{node} was not called")
    faults = list(_faults(trial, first, second))
    if faults:
        one, other = asyncio.run(_lived(trial.spec, failing_at(node), stage))
        if one.ok or not other.ok or not same(other.output, encode(predict(trial.spec).output)):
            return Judgement(vacuous="the executor does not fail and resume at a node that raises either")
    return Judgement(faults[:1], {"E15": 1}, lambda why: (*story, *([f"{'why':<9}{why}"] if why else [])))


async def _lived(spec: PipelineSpec, body: Body, stage: Stage) -> tuple[Ended, Ended]:
    store = stage.make_store()
    inputs = spec.input_values()
    with counted_by(AttemptsInMemory()):
        first = await ended(stage.executor, build(spec), store, RUN_ID, inputs=inputs, body=body)
        second = await ended(stage.executor, build(spec), store, RUN_ID)
    return first, second


def _returning(node: str, make: Callable[[], Any]) -> Body:
    async def body(name: str, call: Callable[[], Awaitable[Any]]) -> Any:
        output = await call()
        return make() if name == node else output

    return body


def _faults(trial: Trial, first: Ended, second: Ended) -> Iterator[Fault]:
    node, value = trial.rest
    needs = dependencies(build(trial.spec))
    behind = [called for called in dict.fromkeys(first.calls) if node in needs.get(called, ())]
    due = encode(predict(trial.spec).output)
    if behind:
        yield (
            "E15",
            f"`{node}` returned {value}, which cannot be stored, and `{behind[0]}` was called with it",
            "what is downstream has acted on an output that no resume can give it again; refuse it at the node",
        )
    elif first.ok:
        yield (
            "E15",
            f"`{node}` returned {value}, which cannot be stored, and the run reported success",
            "what a store gives back is something else: text, or nothing",
        )
    elif node not in str(first.error) or VALUES[value][1] not in str(first.error):
        yield (
            "E15",
            f"`{node}` returned {value}, which cannot be stored, and the error does not name node and path: "
            f"{type(first.error).__name__}: {first.error}",
            "",
        )
    elif not second.ok:
        yield "E15", f"after `{node}` had returned {value}, the run cannot be resumed: {second.error}", ""
    elif not same(second.output, due):
        yield (
            "E15",
            f"after `{node}` had returned {value}, the resumed run returned {show(second.output)}, where {show(due)} "
            "is due",
            "what could not be stored was stored as something else",
        )
