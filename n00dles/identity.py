"""Whether a stored run still is the run that is resumed: same inputs, and same pipeline as far as it has come."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .context import PipelineContext
from .errors import InputsChangedError, PipelineChangedError
from .pipeline import Pipeline

__all__ = ["check_inputs_unchanged", "check_pipeline_unchanged"]

_SHOWN = 60
_LISTED = 5


def check_inputs_unchanged(context: PipelineContext, inputs: Mapping[str, Any]) -> None:
    """Raise `InputsChangedError` if `inputs`, in stored form, are not those that the run was started with."""
    if _same(context.inputs, inputs):
        return
    first, now = _difference(context.inputs, inputs), _difference(inputs, context.inputs)
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
    names = {agent.name for agent in pipeline.agents()}
    unknown = next((node for node in context.completed if node not in names), None)
    if unknown is not None:
        raise _changed(context, f"its completed node {unknown!r} is not in the pipeline any more")
    before, now = context.signature, pipeline.signature()
    # Records of foreign stores and of the 0.3 release have no signature.
    if not before or before == now:
        return
    completed = [any(map(context.is_complete, (agent.name for agent in step.agents()))) for step in pipeline.steps]
    last = max((index for index, any_complete in enumerate(completed) if any_complete), default=-1)
    for index in range(last + 1):
        old = before[index] if index < len(before) else "nothing"
        if old != now[index]:
            raise _changed(context, f"its step {index + 1} was {old}, and is now {now[index]}")


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


def _difference(inputs: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    own = [
        f"{name}={_clipped(value)}"
        for name, value in inputs.items()
        if name not in other or not _same(other[name], value)
    ]
    return ", ".join(own) or f"no {', '.join(sorted(other.keys() - inputs.keys()))}"


def _clipped(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same text: Python says that 1, 1.0 and True are equal, and 0.0 and -0.0."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
