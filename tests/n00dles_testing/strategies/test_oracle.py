"""The oracle: what it says of a spec is what the executor does, in first lives and in later ones."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings

from n00dles import InMemoryStateStore, PipelineFailure, resume, run
from n00dles.agent import Agent
from n00dles.events import BranchRouted, Event, GroupJoined, NodeStarted
from n00dles.executor import Execution
from n00dles.stores.base import StateStore
from n00dles_testing.crash.typed import canonical, encode
from n00dles_testing.strategies import (
    ALWAYS,
    AttemptsInMemory,
    BranchSpec,
    Choice,
    FanOutSpec,
    FieldSpec,
    InputSpec,
    ModelSpec,
    NestedSpec,
    NodeSpec,
    ParameterSpec,
    PipelineSpec,
    Prediction,
    RouteSpec,
    build,
    counted_by,
    pipelines,
    predict,
)

shrunk = settings(
    max_examples=500,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
)
thorough = settings(max_examples=200, deadline=None, database=None, suppress_health_check=list(HealthCheck))

TITLE = FieldSpec("title", "str")


@dataclass
class Seen:
    """What a life did, by its events."""

    arguments: dict[str, list[str]] = field(default_factory=dict)
    routes: dict[str, str] = field(default_factory=dict)
    joined: set[str] = field(default_factory=set)
    failed_at: str | None = None
    output: Any = None

    def observe(self, event: Event) -> None:
        if isinstance(event, NodeStarted):
            self.arguments.setdefault(event.node, []).append(typed(dict(event.arguments)))
        elif isinstance(event, BranchRouted):
            self.routes[event.branch] = event.route
        elif isinstance(event, GroupJoined):
            self.joined.add(event.group)


def typed(value: Any) -> str:
    return canonical(encode(value))


def lived(spec: PipelineSpec, store: StateStore, attempts: AttemptsInMemory, *, again: bool = False) -> Seen:
    seen = Seen()
    with counted_by(attempts):
        try:
            if again:
                result = resume(build(spec), "r", store=store, observers=[seen.observe])
            else:
                result = run(build(spec), run_id="r", store=store, observers=[seen.observe], **spec.input_values())
        except PipelineFailure as failure:
            seen.failed_at = failure.node_name
        else:
            seen.output = result.output
    return seen


def assert_as_predicted(seen: Seen, expected: Prediction) -> None:
    if expected.finishes:
        assert seen.failed_at is None
        assert typed(seen.output) == typed(expected.output)
        assert seen.routes == expected.routes
        assert seen.joined == expected.joined
    else:
        assert seen.failed_at in expected.failures
    for node, calls in expected.calls.items():
        if node not in expected.uncertain:
            assert seen.arguments.get(node) == [typed(expected.arguments[node])] * calls
    assert set(seen.arguments) <= set(expected.calls)


@thorough
@given(pipelines())
def test_an_undisturbed_run_does_what_is_predicted(spec: PipelineSpec) -> None:
    attempts = AttemptsInMemory()

    seen = lived(spec, InMemoryStateStore(), attempts)

    expected = predict(spec)
    assert_as_predicted(seen, expected)
    if not expected.uncertain:
        failing = {node for node in expected.attempts if node in attempts.counts}
        assert {node: attempts.counts[node] for node in failing} == {n: expected.attempts[n] for n in failing}


def test_a_failed_run_that_is_resumed_does_what_is_predicted() -> None:
    lives: Counter[int] = Counter()

    # Always the same examples: what is counted below is rare, and a run without it would be nobody's fault.
    @settings(thorough, derandomize=True)
    @given(pipelines())
    def each(spec: PipelineSpec) -> None:
        store, attempts = InMemoryStateStore(), AttemptsInMemory()
        seen, expected, life = lived(spec, store, attempts), predict(spec), 1
        # A node that was stopped because of its sibling keeps what it has spent of its attempts: nobody knows how many.
        while seen.failed_at is not None and not expected.uncertain and life < 4:
            stored = stored_outputs(store)
            expected = predict(spec, completed=stored, attempts=attempts.counts)
            seen = lived(spec, store, attempts, again=True)
            assert_as_predicted(seen, expected)
            life += 1
        lives[life] += 1

    each()
    assert lives[2] > 0
    assert lives[4] > 0


def nothing_from_before(execution: Execution, agent: Agent, previous: Any) -> dict[str, Any]:
    return right_arguments(execution, agent, None)


right_arguments = Execution._arguments


@pytest.mark.parametrize(
    ("place", "mutant", "nodes"),
    [
        ("n00dles.attempts.checked_arguments", lambda agent, stored: dict(stored), 1),
        ("n00dles.executor.Execution._arguments", nothing_from_before, 2),
        ("n00dles.retry.RetryPolicy.allows", lambda policy, error: False, 1),
        ("n00dles.executor.Execution._typed", lambda execution, step, stored: stored, 1),
    ],
    ids=["a dict in place of a model", "no output from before", "no second attempt", "a plain result"],
)
def test_a_faulty_executor_is_caught_and_the_example_is_small(
    place: str, mutant: Any, nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, mutant)

    def differs(spec: PipelineSpec) -> bool:
        seen, expected = lived(spec, InMemoryStateStore(), AttemptsInMemory()), predict(spec)
        if not expected.finishes:
            return False
        return seen.failed_at is not None or typed(seen.output) != typed(expected.output)

    found = find(pipelines(), differs, settings=shrunk, random=random.Random(0))

    assert len(found.nodes()) == nodes


def stored_outputs(store: InMemoryStateStore) -> dict[str, Any]:
    context = asyncio.run(store.load("r"))
    assert context is not None
    return dict(context.completed)


def previous(name: str = "text", kind: ModelSpec | None = None) -> tuple[ParameterSpec, ...]:
    return (ParameterSpec(name, "previous", kind),)


def test_a_model_is_told_from_its_dict() -> None:
    article = ModelSpec((TITLE,))
    with_model = PipelineSpec((NodeSpec("a", article), NodeSpec("b", "str", previous("text", article))))
    with_dict = PipelineSpec((NodeSpec("a", article), NodeSpec("b", "str", previous("text"))))

    assert predict(with_model).outputs["a"] == predict(with_dict).outputs["a"]
    assert predict(with_model).output != predict(with_dict).output


def test_another_input_changes_the_last_output() -> None:
    def output(value: str) -> Any:
        first = NodeSpec("a", "str", (ParameterSpec("x", "input"),))
        spec = PipelineSpec((first, NodeSpec("b", "Any", previous())), (InputSpec("x", value),))
        return predict(spec).output

    assert len({typed(output(value)) for value in ("1", "1.0", "true", '"1"', "[1]", "-0.0", "0.0")}) == 7


def test_a_route_is_taken_by_the_key_that_the_node_before_gives() -> None:
    router = NodeSpec("a", Choice(("x", "y")))
    branch = BranchSpec((RouteSpec(("x",), NodeSpec("b", "str")), RouteSpec(("y",), NodeSpec("c", "str"))))

    told = predict(PipelineSpec((router, branch)))

    taken = {"x": "b", "y": "c"}[told.outputs["a"]]
    assert told.routes == {"branch[x,y]": taken}
    assert set(told.calls) == {"a", taken}


def test_attempts_are_counted_up_to_the_one_that_answers() -> None:
    fallback = NodeSpec("b_or", "str", previous(), fails=1, retry=2)
    failing = NodeSpec("b", "str", previous(), fails=ALWAYS, retry=3, fallback=fallback)

    told = predict(PipelineSpec((NodeSpec("a", "str"), failing)))

    assert told.calls == {"a": 1, "b": 5}
    assert told.answers == {"a": "a", "b": "b_or"}
    assert told.attempts == {"a": 1, "b": 3, "b_or": 2}


def test_the_most_specific_number_of_attempts_holds() -> None:
    nested = NestedSpec((NodeSpec("a", "str", fails=2), NodeSpec("b", "str", fails=1, retry=1)), retry=3)

    told = predict(PipelineSpec((nested,), retry=2))

    assert told.calls == {"a": 3, "b": 1}
    assert told.failures == {"b"}


def test_the_siblings_of_a_failing_member_are_uncertain() -> None:
    group = FanOutSpec((NodeSpec("b", "str", fails=ALWAYS), NodeSpec("c", "str")))

    told = predict(PipelineSpec((NodeSpec("a", "str"), group, NodeSpec("d", "str"))))

    assert told.failures == {"b"}
    assert told.uncertain == {"c"}
    assert "d" not in told.calls


def test_what_cannot_be_stored_is_not_tried_again() -> None:
    fallback = NodeSpec("a_or", "str")

    told = predict(PipelineSpec((NodeSpec("a", "str", fails=1, failure="unstorable", retry=3, fallback=fallback),)))

    assert told.failures == {"a"}
    assert told.calls == {"a": 1}


def test_a_resumed_life_calls_only_what_is_left() -> None:
    spec = PipelineSpec((NodeSpec("a", "str"), NodeSpec("b", "str", previous(), fails=1)))
    first = predict(spec)

    second = predict(spec, completed=first.outputs, attempts=first.attempts)

    assert first.failures == {"b"}
    assert second.finishes
    assert second.calls == {"b": 1}
    assert second.output == predict(PipelineSpec((NodeSpec("a", "str"), NodeSpec("b", "str", previous())))).output
