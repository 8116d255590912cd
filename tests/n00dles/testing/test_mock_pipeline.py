"""`mock_pipeline`: none of a pipeline's agents is called; what calls it sees a result, or a failure, as ever."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel

from n00dles import (
    AgentOutputError,
    InMemoryStateStore,
    InputsError,
    PipelineChangedError,
    PipelineFailure,
    agent,
    branch,
    parallel,
    pipeline,
    resume,
    run,
)
from n00dles.testing import mock_agent, mock_pipeline


class Article(BaseModel):
    title: str


@agent(model="gpt-4o-mini")
def researcher(topic: str) -> str:
    """Research the topic."""


@agent(model="claude-sonnet-4-6", fallback=None)
def writer(research: str) -> Article:
    """Write an article."""


@agent(model="gpt-4o-mini")
def dated(research: str) -> date:
    """Say when."""


content = pipeline(researcher >> writer, name="content")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)


def endpoint(topic: str, **options: Any) -> dict[str, str]:
    result = run(content, topic=topic, **{"store": "memory://", **options})
    return {"title": result.output.title, "run": result.run_id}


def test_what_calls_it_gets_the_output_in_its_declared_type() -> None:
    with mock_pipeline(content, returns={"title": "mocked"}) as mock:
        assert endpoint("x")["title"] == "mocked"
        assert run(content, topic="y", store="memory://").output == Article(title="mocked")

    assert mock.call_count == 2
    assert [step.name for step in content.steps] == ["researcher", "writer"]


def test_it_decorates() -> None:
    @mock_pipeline(content, returns=Article(title="decorated"))
    def ask() -> str:
        return endpoint("x")["title"]

    assert ask() == "decorated"


def test_inputs_are_checked_as_ever() -> None:
    with mock_pipeline(content, returns={"title": "mocked"}):
        with pytest.raises(InputsError, match="topic"):
            run(content, store="memory://")
        with pytest.raises(InputsError, match="size"):
            run(content, topic="x", size=3, store="memory://")


def test_a_failure_is_that_of_a_pipeline_and_is_not_tried_again() -> None:
    seen: list[PipelineFailure] = []
    watched = pipeline(researcher >> writer, name="watched", on_error=seen.append)

    with mock_pipeline(watched, raises=ConnectionError("cut")) as mock, pytest.raises(PipelineFailure) as failed:
        run(watched, topic="x", store="memory://")

    assert isinstance(failed.value.cause, ConnectionError)
    assert failed.value.node_name == "watched"
    assert seen == [failed.value]
    assert mock.call_count == 1


def test_what_does_not_fit_its_last_step_is_refused_at_once() -> None:
    with (
        pytest.raises(AgentOutputError, match=r"'content'.*should be an object"),
        mock_pipeline(content, returns="mocked article"),
    ):
        pytest.fail("the mock was in force")

    assert run_mocked(pipeline(researcher >> dated, name="when"), date(2030, 1, 31)) == date(2030, 1, 31)


def test_a_fan_out_gives_a_dict_and_a_branch_what_a_route_gives() -> None:
    fan = pipeline(researcher >> parallel(writer, dated), name="fan")
    routes = pipeline(researcher >> branch(a=writer, b=dated), name="routes")

    assert run_mocked(fan, {"writer": {"title": "a"}, "dated": "2030-01-31"}) == {
        "writer": Article(title="a"),
        "dated": date(2030, 1, 31),
    }
    assert run_mocked(routes, {"title": "a"}) == Article(title="a")
    assert run_mocked(routes, "2030-01-31") == date(2030, 1, 31)
    with pytest.raises(AgentOutputError), mock_pipeline(fan, returns={"writer": {"title": "a"}}):
        pytest.fail("the mock was in force")


def run_mocked(whole: Any, returns: Any) -> Any:
    with mock_pipeline(whole, returns=returns):
        return run(whole, topic="x", store="memory://").output


def test_one_node_stands_for_all_in_the_record_and_cannot_be_taken_for_a_real_run() -> None:
    store = InMemoryStateStore()
    with mock_pipeline(content, returns={"title": "mocked"}) as mock:
        run_id = endpoint("x", store=store, run_id="r-1")["run"]
        again = resume(content, run_id, store=store)

    assert again.output == Article(title="mocked")
    assert [trace.name for trace in again.agent_traces] == ["content"]
    assert mock.call_count == 1
    with pytest.raises(PipelineChangedError, match="content"):
        resume(content, run_id, store=store)


def test_a_step_of_another_pipeline_is_mocked_there() -> None:
    @agent
    def shorten(article: Article) -> str:
        return article.title[:3]

    @agent
    def join(content: Article, shorten: str) -> str:
        return f"{content.title}/{shorten}"

    whole = pipeline(content >> shorten >> join, name="whole")
    with mock_pipeline(content, returns={"title": "mocked"}) as mock:
        result = run(whole, topic="x", store="memory://")

    assert result.output == "mocked/moc"
    assert [trace.name for trace in result.agent_traces] == ["content", "shorten", "join"]
    assert mock.call_count == 1


def test_a_member_of_a_fan_out_and_a_route_are_mocked_there() -> None:
    other = pipeline(researcher.named("other"), name="elsewhere")
    fan = pipeline(parallel(content, other), name="fan")
    routed = pipeline(researcher.named("first") >> branch(go=content), name="routed")

    with (
        mock_pipeline(content, returns={"title": "a"}),
        mock_pipeline(other, returns="b"),
        mock_agent(routed.agents()[0], returns="go"),
    ):
        assert run(fan, topic="x", store="memory://").output == {"content": Article(title="a"), "elsewhere": "b"}
        assert run(routed, topic="x", store="memory://").output == Article(title="a")


def test_a_pipeline_named_like_its_only_agent() -> None:
    single = pipeline(researcher)

    assert single.name == "researcher"
    assert run_mocked(single, "facts") == "facts"


def test_the_inner_of_two_mocks_answers_and_nothing_is_left() -> None:
    from n00dles import api
    from n00dles.executor import Execution

    before = (
        Execution._pipeline_step,
        Execution._typed,
        vars(api)["check_ready"],
        vars(api)["check_pipeline_unchanged"],
    )
    with mock_pipeline(content, returns={"title": "outer"}):
        with mock_pipeline(content, returns={"title": "inner"}):
            assert endpoint("x")["title"] == "inner"
        assert endpoint("x")["title"] == "outer"

    assert (
        Execution._pipeline_step,
        Execution._typed,
        vars(api)["check_ready"],
        vars(api)["check_pipeline_unchanged"],
    ) == before
