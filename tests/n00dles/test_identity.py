"""A run id means one run: the same inputs, and the same pipeline as far as it has come."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from n00dles import (
    Agent,
    InMemoryStateStore,
    InputsChangedError,
    Pipeline,
    PipelineChangedError,
    PipelineFailure,
    RunResult,
    agent,
    branch,
    pipeline,
    resume,
    run,
)

calls: list[str] = []


class Article(BaseModel):
    title: str


@pytest.fixture(autouse=True)
def _fresh() -> None:
    calls.clear()


def node(name: str, *, fails: bool = False) -> Agent:
    @agent(retry=1)
    def body(value: str) -> str:
        calls.append(name)
        if fails:
            raise RuntimeError("no luck")
        return f"{name}({value})"

    return body.named(name)


A, B, C, D, FAILING = node("a"), node("b"), node("c"), node("d"), node("c", fails=True)


def half_done(flow: Pipeline, **inputs: Any) -> InMemoryStateStore:
    """Return a store in which run 'r' of this pipeline has failed on its way."""
    store = InMemoryStateStore()
    with pytest.raises(PipelineFailure):
        run(flow, run_id="r", store=store, **(inputs or {"value": "x"}))
    calls.clear()
    return store


STARTED = pipeline(A >> B >> FAILING, name="content")


@pytest.mark.parametrize(
    ("changed", "difference"),
    [
        (pipeline(A >> node("b2") >> C, name="content"), "completed node 'b' is not in the pipeline any more"),
        (pipeline(A >> C, name="content"), "completed node 'b' is not in the pipeline any more"),
        (pipeline(B >> A >> C, name="content"), r"its step 1 was a\(value: str\) -> str, and is now b\("),
        (pipeline(A >> D >> B >> C, name="content"), r"its step 2 was b\(.*, and is now d\("),
        (pipeline((A | B) >> C, name="content"), r"its step 1 was a\(.*, and is now \(a\(.*\| b\("),
        (pipeline(A >> B >> C, name="other"), "belongs to pipeline 'content', and is resumed with 'other'"),
    ],
    ids=["renamed", "dropped", "reordered", "inserted", "regrouped", "another pipeline"],
)
def test_a_resume_under_a_changed_pipeline_names_the_difference(changed: Pipeline, difference: str) -> None:
    store = half_done(STARTED)

    with pytest.raises(PipelineChangedError, match=difference) as caught:
        resume(changed, "r", store=store)

    assert caught.value.run_id == "r"
    assert "Its 2 completed nodes (a, b) belong to the old shape" in str(caught.value)
    assert calls == []
    assert resume(pipeline(A >> B >> C, name="content"), "r", store=store).output == "c(b(a(x)))"


def test_a_completed_node_of_another_type_is_a_changed_pipeline() -> None:
    @agent
    def retyped(value: str) -> Article:
        return Article(title=value)

    store = half_done(STARTED)

    with pytest.raises(PipelineChangedError, match=r"its step 2 was b\(value: str\) -> str, and is now b\(.*Article"):
        resume(pipeline(A >> retyped.named("b") >> C, name="content"), "r", store=store)

    assert calls == []


@pytest.mark.parametrize(
    ("changed", "output"),
    [
        (pipeline(A >> B >> C, name="content"), "c(b(a(x)))"),
        (pipeline(A >> B >> D, name="content"), "d(b(a(x)))"),
        (pipeline(A >> B >> C >> D, name="content"), "d(c(b(a(x))))"),
        (pipeline(A >> B >> (C | D), name="content"), {"c": "c(b(a(x)))", "d": "d(b(a(x)))"}),
        (pipeline(A >> B, name="content"), "b(a(x))"),
        (A >> B >> C, "c(b(a(x)))"),
    ],
    ids=["repaired", "another last step", "a step more", "a fan-out", "a step less", "unnamed"],
)
def test_steps_behind_the_completed_ones_may_change(changed: Pipeline, output: Any) -> None:
    store = half_done(STARTED)

    result = resume(changed, "r", store=store)

    assert result.output == output
    assert {"a", "b"}.isdisjoint(calls)


def test_a_step_added_to_a_finished_run_is_run() -> None:
    store = InMemoryStateStore()
    run(pipeline(A >> B, name="content"), run_id="r", store=store, value="x")
    calls.clear()

    result = resume(pipeline(A >> B >> C, name="content"), "r", store=store)

    assert (result.output, calls) == ("c(b(a(x)))", ["c"])


def test_a_half_done_fan_out_may_not_change() -> None:
    store = half_done(pipeline(A >> (B | FAILING), name="content"))

    with pytest.raises(PipelineChangedError, match="its step 2 was"):
        resume(pipeline(A >> (B | FAILING | D), name="content"), "r", store=store)

    assert resume(pipeline(A >> (B | C), name="content"), "r", store=store).output["c"] == "c(a(x))"


def test_a_route_may_be_added_before_the_branch_is_reached_and_not_after() -> None:
    router = node("router")
    store = half_done(pipeline(router >> branch(default=B, x=A) >> FAILING, name="content"))

    with pytest.raises(PipelineChangedError, match=r"its step 2 was branch\("):
        resume(pipeline(router >> branch(default=B, x=A, y=D) >> C, name="content"), "r", store=store)

    assert calls == []


# Inputs.


def started() -> InMemoryStateStore:
    return half_done(pipeline(A >> FAILING, name="content"), value="x")


def carried_on(store: InMemoryStateStore, **inputs: Any) -> RunResult:
    return run(pipeline(A >> C, name="content"), run_id="r", store=store, **inputs)


def test_a_run_with_the_same_inputs_carries_on() -> None:
    store = started()

    result = carried_on(store, value="x")

    assert (result.output, calls) == ("c(a(x))", ["c"])


def test_a_run_without_inputs_carries_on() -> None:
    store = started()

    result = carried_on(store)

    assert (result.output, calls) == ("c(a(x))", ["c"])


def test_a_run_with_other_inputs_names_the_difference() -> None:
    store = started()

    with pytest.raises(InputsChangedError) as caught:
        carried_on(store, value="y")

    assert str(caught.value) == (
        "run 'r' was started with value='x', and is resumed with value='y'. Its 1 completed node (a) belong to the "
        "first. Resume without inputs, or use a new run_id."
    )
    assert calls == []
    assert carried_on(store, value="x").output == "c(a(x))"


@pytest.mark.parametrize(
    ("first", "now"),
    [(1, True), (1, 1.0), ([1], [1.0]), ({"k": 0}, {"k": False}), (0.0, -0.0), ("é", "e\u0301"), (None, "")],
    ids=repr,
)
def test_inputs_that_python_calls_equal_are_not_the_same_if_json_tells_them_apart(first: Any, now: Any) -> None:
    @agent(retry=1)
    def read(value):  # type: ignore[no-untyped-def]
        calls.append(repr(value))
        if len(calls) == 1:
            raise RuntimeError("no luck")
        return value

    store = InMemoryStateStore()
    with pytest.raises(PipelineFailure):
        run(read, run_id="r", store=store, value=first)

    with pytest.raises(InputsChangedError, match="was started with value="):
        run(read, run_id="r", store=store, value=now)

    assert calls == [repr(first)]


def test_a_finished_run_with_other_inputs_is_an_error_too() -> None:
    store = InMemoryStateStore()
    run(A, run_id="r", store=store, value="x")
    calls.clear()

    with pytest.raises(InputsChangedError):
        run(A, run_id="r", store=store, value="y")

    assert (run(A, run_id="r", store=store, value="x").output, calls) == ("a(x)", [])
