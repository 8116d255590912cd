"""What a generated pipeline has to do, told from its spec alone: an interpreter that shares no code with the executor.

    expected = predict(spec)
    result = run(build(spec), store=InMemoryStateStore(), **spec.input_values())
    assert result.output == expected.output

It knows nothing of stores, tasks, events or wiring: a parameter's source is written in the spec, and steps are taken
one after another. What depends on which member of a fan-out is faster is said to be uncertain, and not guessed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .behaviour import planned_output
from .model_values import json_form
from .spec import ALWAYS, BranchSpec, FanOutSpec, NestedSpec, NodeSpec, PipelineSpec, StepSpec, nodes_of, step_name
from .typed_value import typed_value
from .types import TypeSpec

__all__ = ["Prediction", "predict"]


@dataclass
class Prediction:
    """What one undisturbed life has to do.

    `output` is what `RunResult.output` is, in the declared type; None if the run fails. `outputs` are those of
    nodes, in the form in which they are stored. `arguments` are those of each node that is called, in their declared
    types; `calls` says how many attempts it needs in this life, fallbacks included, and `answers` who gave its output.
    `routes` has the name of the step that each branch takes. `joined` are the fan-outs that end.

    `failures` names the nodes at one of which the run fails; empty if it finishes. Nodes in `uncertain` may or may not
    be called, since a sibling fails; what is said of them holds if they are. `attempts` is what the world has counted
    at the end (see `attempts`).
    """

    output: Any = None
    outputs: dict[str, Any] = field(default_factory=dict)
    arguments: dict[str, dict[str, Any]] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    routes: dict[str, str] = field(default_factory=dict)
    joined: set[str] = field(default_factory=set)
    failures: set[str] = field(default_factory=set)
    uncertain: set[str] = field(default_factory=set)
    attempts: Counter[str] = field(default_factory=Counter)

    @property
    def finishes(self) -> bool:
        """Whether the run returns a result."""
        return not self.failures


def predict(
    spec: PipelineSpec,
    *,
    completed: Mapping[str, Any] | None = None,
    attempts: Mapping[str, int] | None = None,
) -> Prediction:
    """Return what the next life of a run of `spec` has to do, if nobody disturbs it.

    `completed` are the outputs that are stored as it begins, `attempts` what the world has counted until then; without
    them it is the first life. `calls` holds if no node has been left between two of its attempts, by a kill or by a
    sibling that failed (it is in `uncertain` then): such a node has fewer left than it says here.
    """
    prediction = Prediction(outputs=dict(completed or {}), attempts=Counter(attempts or {}))
    interpreter = _Interpreter(spec.input_values(), prediction, frozenset(completed or ()))
    try:
        stored = interpreter.chain(spec.steps, None, spec.retry)
    except _FailedError as failed:
        prediction.failures = failed.nodes
    else:
        prediction.output = interpreter.typed(spec.steps[-1], stored)
    return prediction


class _FailedError(Exception):
    def __init__(self, nodes: set[str]) -> None:
        self.nodes = nodes


class _Interpreter:
    def __init__(self, inputs: Mapping[str, Any], prediction: Prediction, completed: frozenset[str]) -> None:
        self._inputs = inputs
        self._told = prediction
        self._completed = completed
        self._readable: dict[str, Any] = dict(prediction.outputs)
        self._taken: dict[int, StepSpec] = {}

    def chain(self, steps: tuple[StepSpec, ...], previous: Any, retry: int) -> Any:
        for step in steps:
            previous = self._step(step, previous, retry)
        return previous

    def _step(self, step: StepSpec, previous: Any, retry: int) -> Any:
        if isinstance(step, NodeSpec):
            output = self._node(step, previous, retry)
        elif isinstance(step, NestedSpec):
            output = self.chain(step.steps, previous, step.retry or retry)
        elif isinstance(step, FanOutSpec):
            output = self._fan_out(step, previous, retry)
        else:
            return self._branch(step, previous, retry)
        self._readable[step_name(step)] = output
        return output

    def _fan_out(self, step: FanOutSpec, previous: Any, retry: int) -> Any:
        outputs: dict[str, Any] = {}
        failed: dict[int, set[str]] = {}
        for index, member in enumerate(step.members):
            try:
                outputs[step_name(member)] = self._step(member, previous, retry)
            except _FailedError as error:
                failed[index] = error.nodes
        if failed:
            uncertain: set[str] = set()
            for index, member in enumerate(step.members):
                if len(failed) > 1 or index not in failed:
                    uncertain |= {node.name for node in nodes_of(member)} - self._completed
            self._told.uncertain |= uncertain
            # No attempt has to follow a failed one once a sibling has failed, so that one may be what is named.
            stopped = {node for node in uncertain if self._told.calls.get(node, 0) > 1}
            raise _FailedError(stopped.union(*failed.values()))
        self._told.joined.add(step_name(step))
        return outputs

    def _branch(self, step: BranchSpec, previous: Any, retry: int) -> Any:
        key = previous.get("category") if isinstance(previous, dict) else previous
        taken = next((route.step for route in step.routes if isinstance(key, str) and key in route.keys), step.default)
        if taken is None:
            raise _FailedError({step_name(step)})
        self._told.routes[step_name(step)] = step_name(taken)
        self._taken[id(step)] = taken
        return self._step(taken, previous, retry)

    def _node(self, node: NodeSpec, previous: Any, retry: int) -> Any:
        if node.name in self._completed:
            return self._told.outputs[node.name]
        arguments = self._arguments(node, previous)
        self._told.arguments[node.name] = {name: _in_type(declared, stored) for name, declared, stored in arguments}
        self._told.calls[node.name] = 0
        answering: NodeSpec | None = node
        allowed = node.retry or retry
        while answering is not None:
            for _ in range(allowed):
                self._told.calls[node.name] += 1
                self._told.attempts[answering.name] += 1
                if not self._fails(answering):
                    return self._answer(node, answering, arguments)
                if answering.failure == "unstorable":
                    raise _FailedError({node.name})
            answering = answering.fallback
            # A fallback is tried once, unless it says otherwise.
            allowed = (answering.retry or 1) if answering is not None else 0
        raise _FailedError({node.name})

    def _fails(self, node: NodeSpec) -> bool:
        return node.fails == ALWAYS or self._told.attempts[node.name] <= node.fails

    def _answer(self, node: NodeSpec, answering: NodeSpec, arguments: list[tuple[str, TypeSpec | None, Any]]) -> Any:
        if node.is_model:
            seen = {"prompt": _prompt(node, arguments), "system": f"Answer as {node.name}."}
        else:
            seen = {name: _in_type(declared, stored) for name, declared, stored in arguments}
            given = {name for name, _, _ in arguments}
            seen |= {
                each.name: json.loads(each.default or "null") for each in node.parameters if each.name not in given
            }
        output = json_form(planned_output(node, seen))
        self._told.outputs[node.name] = output
        self._told.answers[node.name] = answering.name
        return output

    def _arguments(self, node: NodeSpec, previous: Any) -> list[tuple[str, TypeSpec | None, Any]]:
        """Return name, declared type and stored value of what is passed; what is left to its default is not."""
        found = []
        for each in node.parameters:
            if each.source == "previous":
                found.append((each.name, each.type, previous))
            elif each.source == "input":
                found.append((each.name, each.type, self._inputs[each.name]))
            elif each.source == "step" or (each.source == "maybe" and each.name in self._readable):
                found.append((each.name, each.type, self._readable[each.name]))
        return found

    def typed(self, step: StepSpec, stored: Any) -> Any:
        if isinstance(step, NestedSpec):
            return self.typed(step.steps[-1], stored)
        if isinstance(step, BranchSpec):
            return self.typed(self._taken[id(step)], stored)
        if isinstance(step, FanOutSpec):
            return {step_name(member): self.typed(member, stored[step_name(member)]) for member in step.members}
        return _in_type(step.output if step.is_annotated or step.is_model else None, stored)


def _in_type(declared: TypeSpec | None, stored: Any) -> Any:
    return typed_value(declared, json.dumps(stored, ensure_ascii=False))


def _prompt(node: NodeSpec, arguments: list[tuple[str, TypeSpec | None, Any]]) -> str:
    """Return what a model is asked, defaults included that say something: a single text as it is, all else as JSON."""
    passed = {name: stored for name, _, stored in arguments}
    told = {
        each.name: passed[each.name] if each.name in passed else json.loads(each.default or "null")
        for each in node.parameters
        if each.name in passed or each.default not in (None, "null")
    }
    asked: Any = next(iter(told.values())) if len(told) == 1 else told
    return asked if isinstance(asked, str) else json.dumps(asked, ensure_ascii=False, separators=(",", ":"))
