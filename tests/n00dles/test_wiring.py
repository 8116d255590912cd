"""Where each argument comes from."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from pydantic import BaseModel

from n00dles import (
    Agent,
    AgentInputError,
    InputsError,
    PipelineBuildError,
    PipelineFailure,
    agent,
    branch,
    pipeline,
    run,
)


class Article(BaseModel):
    title: str


@agent
def first(topic: str) -> str:
    return f"first({topic})"


@agent
def second(text: str) -> str:
    return f"second({text})"


@agent
def both(first: str, second: str) -> str:
    return f"{first} + {second}"


def output(step: Any, **inputs: Any) -> Any:
    return run(pipeline(step), store="memory://", **inputs).output


def test_a_single_parameter_gets_the_previous_output_whatever_its_name() -> None:
    assert output(first >> second, topic="x") == "second(first(x))"


def test_a_single_parameter_gets_the_previous_output_even_if_an_earlier_step_has_its_name() -> None:
    @agent
    def third(first: str) -> str:
        return f"third({first})"

    assert output(first >> second >> third, topic="x") == "third(second(first(x)))"


def test_several_parameters_are_filled_by_name_from_outputs_then_inputs_then_defaults() -> None:
    @agent
    def mixed(second: str, topic: str, first: str, style: str = "plain", tone: str = "calm") -> str:
        return "|".join([second, topic, first, style, tone])

    found = output(first >> second >> mixed, topic="x", tone="loud")

    assert found == "second(first(x))|x|first(x)|plain|loud"


def test_an_output_goes_before_an_input_of_the_same_name() -> None:
    @agent
    def pair(first: str, other: str) -> str:
        return first + other

    with pytest.raises(InputsError, match="'first' is read by no node"):
        output(first >> pair, topic="x", first="input", other="!")

    assert output(first >> pair, topic="x", other="!") == "first(x)!"


def test_a_node_without_parameters_gets_nothing() -> None:
    @agent
    def alone() -> int:
        return 7

    assert output(alone) == 7
    assert output(first >> alone, topic="x") == 7


def test_the_node_after_a_fan_out_gets_its_members_by_name() -> None:
    @agent
    def title(topic: str) -> str:
        return topic.title()

    assert output((first | title) >> named("join", "title", "first"), topic="x") == "X+first(x)"


def named(name: str, *parameters: str) -> Agent:
    """Return an agent with these parameters, which joins what it gets."""
    scope: dict[str, Any] = {}
    exec(f"def node({', '.join(parameters)}):\n    return '+'.join(map(str, [{', '.join(parameters)}]))", scope)
    made: Agent = agent(scope["node"])
    return made.named(name)


def test_a_single_parameter_after_a_fan_out_gets_the_member_of_its_name_or_the_whole_group() -> None:
    group = first | named("title", "topic")

    one = output(group >> named("one", "title"), topic="x")
    whole = output(group >> named("whole", "anything"), topic="x")

    assert one == "x"
    assert whole == str({"first": "first(x)", "title": "x"})


def test_members_of_a_fan_out_do_not_see_each_other() -> None:
    peeking = named("peeking", "first", "topic")

    with pytest.raises(InputsError, match="'first' is missing"):
        output(first | peeking, topic="x")

    assert output(first | peeking, topic="x", first="input") == {"first": "first(x)", "peeking": "input+x"}


def test_a_named_pipeline_gives_its_output_under_its_name() -> None:
    inner = pipeline(first >> second, name="inner")

    found = output(inner >> named("tail", "inner", "first"), topic="x")

    assert found == "second(first(x))+first(x)"


def test_a_parameter_that_only_one_route_fills_needs_a_default() -> None:
    router = named("router", "key")
    routes = branch(a=named("left", "value"), b=named("right", "value"))

    @agent
    def tail(key: str, left: str = "none", right: str = "none") -> str:
        return f"{key}+{left}+{right}"

    with pytest.raises(PipelineBuildError, match=r"'left'.*one route of a branch only.*default"):
        output(router >> routes >> named("tail", "left", "key"), key="a")

    assert output(router >> routes >> tail, key="a") == "a+a+none"


def test_a_single_parameter_after_a_branch_gets_the_output_of_the_route_that_ran() -> None:
    router = named("router", "key")
    routes = branch(a=first.named("left"), b=second.named("right"))

    assert output(router >> routes >> named("tail", "left"), key="b") == "second(b)"


def test_a_branch_needs_a_step_before_it() -> None:
    with pytest.raises(PipelineBuildError, match="no step before it"):
        output(branch(a=first), topic="x")


OPTIONS = sorted(set(inspect.signature(run).parameters) - {"target", "inputs"})


@pytest.mark.parametrize("name", OPTIONS)
def test_a_parameter_that_would_read_an_option_of_run_is_refused(name: str) -> None:
    with pytest.raises(PipelineBuildError, match=f"would read the input '{name}', an option of run"):
        output(named("node", name))


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ({}, "'topic' is missing (read by first)"),
        ({"topic": "x", "tone": "y"}, "'tone' is read by no node"),
        ({"topik": "x"}, "'topic' is missing (read by first); 'topik' is read by no node"),
    ],
    ids=["missing", "superfluous", "misspelt"],
)
def test_inputs_that_do_not_fit_are_refused_before_the_first_call(inputs: dict[str, Any], problem: str) -> None:
    calls = []

    @agent
    def paid() -> str:
        calls.append("paid")
        return "paid"

    with pytest.raises(InputsError) as caught:
        output(paid >> named("first", "paid", "topic"), **inputs)

    assert problem in str(caught.value)
    assert "It takes topic" in str(caught.value)
    assert calls == []


def test_an_input_of_the_wrong_type_is_refused_before_the_first_call() -> None:
    calls: list[str] = []

    @agent
    def early(topic: str) -> str:
        calls.append(topic)
        return topic

    @agent
    def late(early: str, count: int) -> str:
        return early * count

    with pytest.raises(InputsError, match=r"parameter 'count'.*No node was called"):
        output(early >> late, topic="x", count="many")

    assert calls == []
    assert output(early >> late, topic="x", count=2) == "xx"


# The types of arguments.


def test_a_parameter_annotated_with_a_model_gets_the_model_and_one_without_gets_plain_json() -> None:
    seen: list[Any] = []

    @agent
    def writer(topic: str) -> Article:
        return Article(title=topic)

    @agent
    def typed(article: Article) -> Article:
        seen.append(article)
        return article

    @agent
    def untyped(article):  # type: ignore[no-untyped-def]
        seen.append(article)
        return article

    found = output(writer >> typed >> untyped, topic="x")

    assert seen == [Article(title="x"), {"title": "x"}]
    assert found == {"title": "x"}


def test_each_node_gets_its_own_copy() -> None:
    seen = []

    @agent
    def make(x: int) -> dict[str, list[int]]:
        return {"list": [x]}

    @agent
    def spoil(value: dict[str, list[int]]) -> str:
        value["list"].append(99)
        return "spoilt"

    @agent
    def look(make: dict[str, list[int]], spoil: str) -> str:
        seen.append(make)
        return spoil

    output(make >> spoil >> look, x=1)

    assert seen == [{"list": [1]}]


def test_an_output_that_does_not_fit_the_next_parameter_fails_that_node_without_a_call() -> None:
    calls = []

    @agent
    def writer(topic: str) -> dict[str, int]:
        return {"pages": 3}

    @agent(retry=3)
    def editor(article: Article) -> str:
        calls.append(article)
        return "edited"

    with pytest.raises(PipelineFailure) as caught:
        output(writer >> editor, topic="x")

    assert isinstance(caught.value.cause, AgentInputError)
    assert (caught.value.node_name, caught.value.cause.parameter) == ("editor", "article")
    assert calls == []


def big(x: int) -> list[str]:
    return ["a"] * x


def each(items: list[str], factor: int) -> int:
    return len(items) * factor


def test_a_node_of_two_parameters_that_reads_nothing_of_the_node_before_it_is_told_how_to() -> None:
    with pytest.raises(InputsError) as caught:
        output(agent(big) >> agent(each), x=2, factor=3)

    assert str(caught.value).endswith(
        "'items' is missing (read by each). `each` has 2 parameters, so each of them is filled by its name, and before "
        "it comes `big`: rename `items` to `big`, or pass items=…. It takes factor, items, x. No node was called."
    )


def test_after_a_fan_out_one_of_its_members_is_meant() -> None:
    with pytest.raises(InputsError, match=r"before it come `b`, `c`: rename `items` to one of `b`, `c`, or pass items"):
        output((agent(big).named("b") | agent(big).named("c")) >> agent(each), x=2, factor=3)


def test_a_node_that_reads_the_node_before_it_simply_lacks_an_input() -> None:
    with pytest.raises(InputsError) as caught:
        output(agent(big).named("items") >> agent(each), x=2)

    assert str(caught.value).endswith("'factor' is missing (read by each). It takes factor, x. No node was called.")
