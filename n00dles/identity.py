"""Whether a stored run still is the run that is resumed: same inputs, and same pipeline as far as it has come.

What a node is called, what it reads, the types that it declares and where it stands are compared, up to the last step
that has a completed node. What a node does (its body, prompt, model, settings, fallback) and how often it is tried may
change: that is how a failing node is repaired. See docs/explanation/what-may-change.md.
"""

from __future__ import annotations

import itertools
import json
import unicodedata
from collections.abc import Mapping
from typing import Any

from .context import PipelineContext
from .errors import InputsChangedError, PipelineChangedError
from .pipeline import Branch, Pipeline, Step
from .serialization import dumps

__all__ = ["check_inputs_unchanged", "check_pipeline_unchanged"]

_SHOWN_OF_A_VALUE = 60
_SHOWN_OF_A_STEP = 240
_LISTED = 5


def check_inputs_unchanged(context: PipelineContext, inputs: Mapping[str, Any]) -> None:
    """Raise `InputsChangedError` if `inputs`, in stored form, are not those that the run was started with."""
    if _same(context.inputs, inputs):
        return
    first, now = _differences(context.inputs, inputs)
    raise InputsChangedError(
        f"run {context.run_id!r} was started with {first}, and is resumed with {now}. {_completed(context)} belong to "
        "the first. Resume without inputs, or use a new run_id.",
        run_id=context.run_id,
    )


def check_pipeline_unchanged(context: PipelineContext, pipeline: Pipeline) -> None:
    """Raise `PipelineChangedError` if the completed part of the run belongs to another pipeline, or shape of it.

    Steps behind the last one that has a completed node may differ.
    """
    if context.pipeline not in (None, pipeline.name) and pipeline.has_own_name:
        raise _changed(context, f"it belongs to pipeline {context.pipeline!r}, and is resumed with {pipeline.name!r}")
    if not context.completed:
        return
    names = {agent.name for agent in pipeline.agents()}
    unknown = next((node for node in context.completed if node not in names), None)
    if unknown is not None:
        raise _changed(context, f"its completed node {unknown!r} is not in the pipeline any more")
    completed = {node: position for position, node in enumerate(context.order)}
    before, now = context.signature, pipeline.signature()
    if not before:
        # Records of the 0.3 release, and of stores that keep four fields, say which nodes are complete and no more.
        difference = _out_of_turn(completed, pipeline)
        if difference is not None:
            raise _changed(context, difference)
        return
    if before == now:
        return
    for index in range(_reached(completed, pipeline)):
        old = before[index] if index < len(before) else "nothing"
        if old != now[index]:
            where = f"its step {index + 1}"
            if max(len(old), len(now[index])) > _SHOWN_OF_A_STEP:
                where += f" ({pipeline.steps[index].name})"
            was, is_now = _told_apart(old, now[index], _SHOWN_OF_A_STEP)
            raise _changed(context, f"{where} was {was}, and is now {is_now}")


# What follows knows of a run only the nodes that are complete, each with its position in the order of completion.
Completed = Mapping[str, int]


def _reached(completed: Completed, chain: Pipeline) -> int:
    """Return how many steps of a chain the run has reached: up to the last one that has a completed node."""
    return max((number for number, step in enumerate(chain.steps, 1) if _of(step, completed)), default=0)


def _of(step: Step, completed: Completed) -> list[str]:
    """Return the completed nodes of a step."""
    return [agent.name for agent in step.agents() if agent.name in completed]


def _out_of_turn(completed: Completed, step: Step) -> str | None:
    """Return what shows that the completed nodes are not those of a run of this pipeline, if anything does."""
    if isinstance(step, Pipeline):
        steps = step.steps[: _reached(completed, step)]
        for earlier, later in itertools.pairwise(steps):
            missing = _missing(completed, earlier)
            if missing is not None:
                after = _of(steps[-1], completed)[0]
                return f"its node {after!r} is completed, and {missing!r}, which comes before it now, is not"
            difference = _in_other_order(completed, earlier, later)
            if difference is not None:
                return difference
    return next((found for child in step.children if (found := _out_of_turn(completed, child)) is not None), None)


def _missing(completed: Completed, step: Step) -> str | None:
    """Return what a step still has to do; None if it is done."""
    if isinstance(step, Branch):
        taken = [route for route in step.children if _of(route, completed)]
        return _missing(completed, taken[0]) if taken else step.name
    if not step.children:
        return None if step.name in completed else step.name
    return next((found for child in step.children if (found := _missing(completed, child)) is not None), None)


def _in_other_order(completed: Completed, earlier: Step, later: Step) -> str | None:
    before = max(_of(earlier, completed), key=completed.__getitem__, default=None)
    after = min(_of(later, completed), key=completed.__getitem__, default=None)
    if before is None or after is None or completed[before] < completed[after]:
        return None
    return f"its node {after!r} had completed before {before!r}, and comes after it now"


def _changed(context: PipelineContext, what: str) -> PipelineChangedError:
    return PipelineChangedError(
        f"run {context.run_id!r} cannot be resumed: {what}. {_completed(context)} belong to the old shape. Resume "
        "with the pipeline as it was, or start a new run.",
        run_id=context.run_id,
    )


def _completed(context: PipelineContext) -> str:
    nodes = context.order
    if not nodes:
        return "Its inputs"
    shown = ", ".join([*nodes[:_LISTED], *(["…"] if len(nodes) > _LISTED else [])])
    return f"Its {len(nodes)} completed node{'s' if len(nodes) > 1 else ''} ({shown})"


def _differences(first: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, str]:
    """Return what is different among two sets of inputs, as each of them has it."""
    names = [name for name in {**first, **now} if not (name in first and name in now and _same(first[name], now[name]))]
    told: list[tuple[str, str]] = []
    for name in names[:_LISTED]:
        if name in first and name in now:
            one, other = _told_apart(*_printed(first[name], now[name]), _SHOWN_OF_A_VALUE)
            told.append((f"{name}={one}", f"{name}={other}"))
        elif name in first:
            told.append((f"{name}={_cut(repr(first[name]), 0, _SHOWN_OF_A_VALUE)}", f"no {name}"))
        else:
            told.append((f"no {name}", f"{name}={_cut(repr(now[name]), 0, _SHOWN_OF_A_VALUE)}"))
    rest = ", …" if len(names) > _LISTED else ""
    return ", ".join(one for one, _ in told) + rest, ", ".join(other for _, other in told) + rest


def _printed(one: Any, other: Any) -> tuple[str, str]:
    """Return two values as text in which whatever differs can be seen."""
    texts = repr(_in_order(one)), repr(_in_order(other))
    if unicodedata.normalize("NFKC", texts[0]) == unicodedata.normalize("NFKC", texts[1]):
        return ascii(_in_order(one)), ascii(_in_order(other))
    return texts


def _in_order(value: Any) -> Any:
    """Return a value with its dicts by key: their order is no difference."""
    if isinstance(value, dict):
        return {key: _in_order(part) for key, part in sorted(value.items())}
    return [_in_order(part) for part in value] if isinstance(value, list) else value


def _told_apart(one: str, other: str, length: int) -> tuple[str, str]:
    """Return two different texts, of long ones the parts where they differ."""
    pairs = enumerate(zip(one, other, strict=False))
    same = next((index for index, (mine, theirs) in pairs if mine != theirs), min(len(one), len(other)))
    start = 0 if same < length * 2 // 3 else same - length // 3
    return _cut(one, start, length), _cut(other, start, length)


def _cut(text: str, start: int, length: int) -> str:
    return f"{'…' if start else ''}{text[start : start + length]}{'…' if start + length < len(text) else ''}"


def _same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same text: Python says that 1, 1.0 and True are equal, and 0.0 and -0.0."""
    if dumps(one) == dumps(other):
        return True
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
