"""A run id means one pipeline, as far as the run has come: what may change on a resume, and what may not."""

from __future__ import annotations

from typing import Any, Optional, Union

import pytest
from pydantic import BaseModel

from n00dles import (
    Agent,
    InMemoryStateStore,
    Pipeline,
    PipelineChangedError,
    PipelineFailure,
    agent,
    branch,
    parallel,
    pipeline,
    resume,
    run,
)
from n00dles.pipeline import Step
from n00dles.providers import LLMResponse
from tests.n00dles.started_runs import FAILING, READER, A, B, C, D, calls, half_done, node, node_reading_anything


class Article(BaseModel):
    title: str


@pytest.fixture(autouse=True)
def _fresh() -> None:
    calls.clear()


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


NAMED = pipeline(A >> B, name="inner")


@pytest.mark.parametrize(
    ("first", "changed", "difference"),
    [
        (
            A >> B >> FAILING,
            NAMED >> C,
            r"its step 1 was a\(value: str\) -> str, and is now inner\[a\(value: str\) -> str >> b\(.*\]\.",
        ),
        (NAMED >> FAILING, A >> B >> C, r"its step 1 was inner\[a.*, and is now a\("),
        (NAMED >> FAILING, pipeline(A >> B, name="other") >> C, r"its step 1 was inner\[a.*, and is now other\[a"),
        (NAMED >> FAILING, pipeline(A >> D >> B, name="inner") >> C, r"its step 1 was .*, and is now inner\[a.* >> d"),
        ((A | B) >> node("j", fails=True), A >> B >> node("j"), r"its step 1 was \(a\(.*\| b\(.*\), and is now a\("),
        (A >> branch(x=D, default=B) >> FAILING, A >> branch(y=D, default=B) >> C, r"its step 2 was branch\(x=d.*y=d"),
        (A >> branch(x=D, default=B) >> FAILING, A >> branch(x=D, z=B) >> C, r"its step 2 was branch\(x=d.*z=b"),
        (A >> B >> FAILING, A >> (B | C), r"its step 2 was b\(.*, and is now \(b\("),
    ],
    ids=["wrapped", "unwrapped", "inner renamed", "inner grown", "serialized", "key", "default", "joined by the next"],
)
def test_a_completed_step_is_changed_if_its_shape_is(first: Step, changed: Step, difference: str) -> None:
    store = half_done(pipeline(first, name="content"))

    with pytest.raises(PipelineChangedError, match=difference):
        resume(pipeline(changed, name="content"), "r", store=store)

    assert calls == []


def test_a_long_step_is_told_where_it_differs() -> None:
    members = [node(f"member_{number}") for number in range(20)]
    store = half_done(pipeline(parallel(*members) >> FAILING, name="content"))
    members[13] = node("another")

    with pytest.raises(PipelineChangedError) as caught:
        resume(pipeline(parallel(*members, member_13) >> C, name="content"), "r", store=store)

    assert "and is now …" in str(caught.value)
    assert "| another(value: str) -> str |" in str(caught.value)
    assert len(str(caught.value)) < 1000


member_13 = node("member_13")


class Longer(BaseModel):
    title: str
    subtitle: str = ""


def test_a_model_with_another_field_is_another_type() -> None:
    def writer(declared: Any) -> Agent:
        def body(value):  # type: ignore[no-untyped-def]
            calls.append("writer")
            return declared(title=value)

        body.__annotations__ = {"value": str, "return": declared}
        return Agent(body).named("writer")

    Longer.__qualname__ = "Article"
    store = half_done(pipeline(writer(Article) >> node_reading_anything(fails=True), name="content"))

    with pytest.raises(PipelineChangedError) as caught:
        resume(pipeline(writer(Longer) >> node_reading_anything(), name="content"), "r", store=store)

    assert (
        "its step 1 was writer(value: str) -> Article{title: str}, and is now writer(value: str) -> "
        "Article{title: str, subtitle: str}. "
    ) in str(caught.value)
    assert calls == []


class Echo:
    """A provider that answers with what it is asked, and by whom."""

    async def complete(self, prompt: str, system: str, **settings: Any) -> LLMResponse:
        calls.append(system)
        return LLMResponse(content=f"{system} {prompt}", model="echo", input_tokens=1, output_tokens=1)


def asking(system: str, **settings: Any) -> Agent:
    def ask(value: str) -> str: ...

    return Agent(ask, model="echo", prompt=system, provider=Echo(), **settings)


def test_what_a_node_does_and_how_often_it_is_tried_may_change() -> None:
    store = half_done(pipeline(asking("Be brief.") >> FAILING, name="content", retry=2, timeout=5))

    changed = pipeline(asking("Be verbose.", temperature=0.5, retry=7, timeout=9, fallback=C) >> C, name="content")

    assert resume(changed, "r", store=store).output == "c(Be brief. x)"
    assert calls == ["c"]


def test_the_same_types_in_other_words_are_no_change() -> None:
    @agent
    def a(value: Optional[str]) -> Union[dict[str, Any], None]:  # noqa: UP007, UP045
        return None

    def other(value: str | None) -> dict[str, Any] | None: ...

    store = half_done(pipeline(a >> FAILING, name="content"))

    assert resume(pipeline(Agent(other).named("a") >> READER, name="content"), "r", store=store).output is None


def test_whatever_is_complete_and_nothing_else_decides() -> None:
    store = half_done(pipeline(A >> FAILING >> D, name="content"))

    result = resume(pipeline(A >> (B | D) >> READER, name="content"), "r", store=store)

    assert result.output == {"b": "b(a(x))", "d": "d(a(x))"}


def test_a_life_under_another_rest_does_not_bind_the_next_one() -> None:
    store = half_done(pipeline(A >> FAILING, name="content"))
    with pytest.raises(PipelineFailure):
        resume(pipeline(A >> D >> node("e", fails=True) >> C, name="content"), "r", store=store)
    calls.clear()

    with pytest.raises(PipelineChangedError, match=r"completed node 'd' is not in the pipeline any more"):
        resume(pipeline(A >> C, name="content"), "r", store=store)

    assert resume(pipeline(A >> D >> B, name="content"), "r", store=store).output == "b(d(a(x)))"
