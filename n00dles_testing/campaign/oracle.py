"""What a run has to do by its spec alone: an executor that is always wrong is not right for being so every time.

Each check yields a clause, the fault in a sentence, and the reason behind it. An output that is wrong because an
argument was is told as the argument; so each fault has one name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..crash.history import History, Life, same
from ..crash.typed import encode, first_difference, show
from ..strategies import BranchSpec, FanOutSpec, NodeSpec, PipelineSpec, Prediction, predict
from ..strategies.spec import StepSpec, nodes_of
from .family import Fault

__all__ = ["faults_of"]


def faults_of(
    spec: PipelineSpec, history: History, counted: Mapping[int, Mapping[str, int]], outputs: Mapping[str, Any]
) -> Iterator[Fault]:
    """Hold each life that nobody disturbed against what the oracle says of it.

    `counted` is what the world had counted of attempts as each life began, `outputs` what each node returns.
    """
    for life in history.working:
        if life.at_point is not None or not life.outcomes:
            continue
        completed = {name: outputs[name] for name in life.stored if name in outputs}
        expected = predict(spec, completed=completed, attempts=counted.get(life.number, {}))
        # A node that an earlier life left between two attempts has fewer left than the oracle can know.
        begun = {call.node for earlier in history.lives if earlier.number < life.number for call in earlier.calls}
        half_way = {name for name in begun if name not in completed}
        if not life.outcomes[-1]["ok"] and _deaths_before(history, life) >= _PATIENCE:
            continue  # a node that kills its process each time may be given up: the affair of E11
        yield from _of_life(spec, life, expected, half_way)


_PATIENCE = 3
"""So many lives in a row that end without a word may be taken for the fault of a node."""


def _deaths_before(history: History, life: Life) -> int:
    """Return how many lives right before `life` were disturbed and have left the store as it was."""
    count = 0
    for earlier in reversed(history.working[: history.working.index(life)]):
        if earlier.at_point is None or earlier.stored != life.stored:
            break
        count += 1
    return count


def _of_life(spec: PipelineSpec, life: Life, expected: Prediction, half_way: set[str]) -> Iterator[Fault]:
    wrong = list(_arguments(life, expected))
    yield from wrong
    yield from _called(spec, life, expected, half_way)
    outcome = life.outcomes[-1]
    if outcome["ok"] and expected.finishes and not wrong:
        difference = first_difference(encode(expected.output), outcome["output"], "output")
        if difference is not None:
            path, right, given = difference
            yield "E04", f"life {life.number} returned {show(given)} at {path}, where {show(right)} is due", _BY_SPEC
    elif outcome["ok"] and not expected.finishes and not half_way & expected.failures:
        nodes = ", ".join(f"`{name}`" for name in sorted(expected.failures))
        yield "E10", f"life {life.number} reported success, where {nodes} cannot but fail", _BY_SPEC
    elif not outcome["ok"] and expected.finishes and not half_way & _failing(spec):
        # An attempt that was planned to fail has ended the run; or something else has.
        planned = any(f"'{name}'" in outcome["message"] for name in _failing(spec))
        clause = "E11" if planned and outcome.get("blame") == "node" else "E04"
        yield clause, f"life {life.number} failed: {outcome['error']}: {outcome['message']}", f"{_BY_SPEC} finishes"


_BY_SPEC = "told from the pipeline alone, without an executor: what it does undisturbed"


def _arguments(life: Life, expected: Prediction) -> Iterator[Fault]:
    for node in dict.fromkeys(call.node for call in life.calls):
        if node not in expected.arguments:
            continue
        right = {name: encode(value) for name, value in expected.arguments[node].items()}
        for call in life.calls:
            if call.node == node and call.arguments is not None and not same(call.arguments, right):
                found = first_difference(right, call.arguments)
                path, due, given = found if found is not None else ("", right, call.arguments)
                yield (
                    "E05",
                    f"`{node}` got {show(given)} in life {life.number}, at {path.lstrip('.') or 'its arguments'}, "
                    f"where {show(due)} is due",
                    _BY_SPEC,
                )
                break


def _called(spec: PipelineSpec, life: Life, expected: Prediction, half_way: set[str]) -> Iterator[Fault]:
    counts = {node: sum(call.node == node for call in life.calls) for node in {call.node for call in life.calls}}
    unclear = expected.uncertain | half_way
    for node, count in sorted(counts.items()):
        if node in expected.outputs and node not in expected.calls:
            continue  # it was complete before: the affair of E02
        if node not in expected.calls and node not in unclear and expected.finishes:
            yield _route_clause(spec, node), f"`{node}` was called, which this run does not call", _BY_SPEC
        elif node not in unclear and count > expected.calls.get(node, count):
            yield (
                "E11" if _has_attempts(spec, node) else "E03",
                f"`{node}` was called {count} times in life {life.number}, where {expected.calls[node]} are due",
                _BY_SPEC,
            )
        elif node not in unclear and count < expected.calls.get(node, count):
            yield (
                "E11",
                f"`{node}` was called {count} times in life {life.number}, where {expected.calls[node]} are due",
                _BY_SPEC,
            )
    if life.outcomes[-1]["ok"] and expected.finishes:
        for node in sorted(set(expected.calls) - set(counts) - unclear):
            yield (
                _route_clause(spec, node),
                f"`{node}` was never called, and the run reported success{_of_a_model(spec, node)}",
                _BY_SPEC,
            )


def _of_a_model(spec: PipelineSpec, name: str) -> str:
    """Say what is likely if a node with a model was not called: its function is there to be called, too."""
    node = _node(spec, name)
    if node is None or not node.is_model:
        return ""
    return (
        f". `{name}` has a model, and is called as `agent.resolve_provider().complete(…)`; likely its `agent.fn` "
        "was called, or nothing, which asks no model"
    )


def _route_clause(spec: PipelineSpec, node: str) -> str:
    """Which clause says that this node is called, or not: a route is a route, also inside a fan-out."""
    around = [step for step in _groups(spec.steps) if node in {each.name for each in nodes_of(step)}]
    is_member = bool(around) and all(isinstance(step, FanOutSpec) for step in around)
    return "E06" if is_member else "E05"


def _groups(steps: tuple[StepSpec, ...]) -> Iterator[StepSpec]:
    for step in steps:
        if isinstance(step, FanOutSpec | BranchSpec):
            yield step
        if not isinstance(step, NodeSpec):
            yield from _groups(step.members if isinstance(step, FanOutSpec) else step.steps)


def _node(spec: PipelineSpec, name: str) -> NodeSpec | None:
    return next((node for node in spec.nodes() if node.name == name), None)


def _failing(spec: PipelineSpec) -> set[str]:
    return {node.name for node in spec.nodes() if node.fails}


def _has_attempts(spec: PipelineSpec, name: str) -> bool:
    node = _node(spec, name)
    return node is not None and (node.fails != 0 or (node.retry or spec.retry) > 1 or node.fallback is not None)
