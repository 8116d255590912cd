"""`mock_agent`: one agent's model or body is replaced, and nothing else of the run."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel

from n00dles import (
    AgentOutputError,
    InMemoryStateStore,
    PipelineFailure,
    RetryPolicy,
    SerializationError,
    agent,
    arun,
    branch,
    parallel,
    pipeline,
    resume,
    run,
)
from n00dles.events import Event
from n00dles.testing import mock_agent, mock_pipeline

QUICK = RetryPolicy(max_attempts=3, base_delay=0.0)


class Article(BaseModel):
    title: str
    tags: list[str] = []


@agent(model="gpt-4o-mini")
def researcher(topic: str) -> str:
    """Research the topic."""


@agent(model="claude-sonnet-4-6", retry=QUICK)
def writer(research: str) -> Article:
    """Write an article."""


@agent
def publish(article: Article) -> str:
    return f"published {article.title}"


@agent
async def archive(article: Article) -> str:
    return f"archived {article.title}"


content = pipeline(researcher >> writer >> publish, name="content")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)


def go(step: Any, **inputs: Any) -> Any:
    return run(step, store="memory://", **inputs)


def test_models_answer_what_they_are_told_without_a_key_and_bodies_run_for_real() -> None:
    with mock_agent(researcher, returns="facts") as facts, mock_agent(writer, returns={"title": "Facts"}) as article:
        result = go(content, topic="x")

    assert result.output == "published Facts"
    assert (facts.call_count, article.call_count) == (1, 1)
    assert [(trace.name, trace.status, trace.attempts) for trace in result.agent_traces] == [
        ("researcher", "ok", 1),
        ("writer", "ok", 1),
        ("publish", "ok", 1),
    ]


def test_a_model_instance_and_a_dict_are_the_same_answer() -> None:
    @agent(model="gpt-4o-mini")
    def write(topic: str) -> Article:
        """Write."""

    outputs = []
    for returns in (Article(title="a", tags=["b"]), {"title": "a", "tags": ["b"]}):
        with mock_agent(write, returns=returns):
            outputs.append(go(write, topic="x").output)

    assert outputs == [Article(title="a", tags=["b"])] * 2


def test_what_does_not_fit_is_refused_where_the_mock_begins() -> None:
    with (
        pytest.raises(AgentOutputError, match=r"node 'writer' returned .*title: Field required"),
        mock_agent(writer, returns={"name": "a"}),
    ):
        pytest.fail("the mock was in force")
    with pytest.raises(AgentOutputError, match=r"'researcher'.*no text"), mock_agent(researcher, returns=3):
        pytest.fail("the mock was in force")
    with pytest.raises(AgentOutputError, match="'writer'"), mock_agent(writer, returns=lambda: {"title": "a"}):
        pytest.fail("the mock was in force")
    with pytest.raises(AgentOutputError, match="'publish'"), mock_agent(publish, returns=["a"]):
        pytest.fail("the mock was in force")
    with pytest.raises(AgentOutputError) as refused, mock_agent(researcher):
        pytest.fail("the mock was in force")

    assert refused.value.__notes__ == [
        "the mock of 'researcher' was given neither returns= nor raises=, so it returns None"
    ]
    assert researcher.provider is None
    assert writer.provider is None


def test_none_is_an_answer_where_the_agent_may_give_none() -> None:
    @agent
    def look(topic: str) -> str | None:
        return topic

    with mock_agent(look):
        assert go(look, topic="x").output is None


def test_a_list_is_an_output_and_no_series_of_answers() -> None:
    @agent(model="gpt-4o-mini")
    def find(topic: str) -> list[date]:
        """Find."""

    with mock_agent(find, returns=[date(2030, 1, 31), "2030-02-01"]) as mock:
        results = [go(find, topic="x").output for _ in range(2)]

    assert results == [[date(2030, 1, 31), date(2030, 2, 1)]] * 2
    assert mock.call_count == 2


def test_what_a_body_could_not_return_is_refused_for_its_mock_too() -> None:
    @agent
    def collect(topic: str) -> Any: ...

    with pytest.raises(SerializationError, match=r"node 'collect'.*set"), mock_agent(collect, returns={"a"}):
        pytest.fail("the mock was in force")


@pytest.mark.parametrize("body", [publish, archive], ids=["sync", "async"])
def test_a_body_is_not_run_and_gives_a_fresh_value_each_time(body: Any) -> None:
    ran = []

    @agent
    def collect(topic: str) -> dict[str, list[str]]:
        ran.append(topic)
        return {}

    @agent
    def spoil(found: dict[str, list[str]]) -> str:
        found["a"].append("spoilt")
        return "ok"

    given = {"a": ["b"]}
    with mock_agent(collect, returns=given), mock_agent(body, returns="mocked"):
        given["a"].append("later")
        first, second = go(collect, topic="x").output, go(collect >> spoil, topic="x").output
        direct = collect(topic="x")
        output = go(body, article={"title": "a"}).output

    assert ran == []
    assert first == direct == {"a": ["b"]}
    assert (second, output) == ("ok", "mocked")


def test_a_mocked_body_is_called_like_the_body() -> None:
    with mock_agent(publish, returns="mocked"), mock_agent(archive, returns="mocked"):
        with pytest.raises(TypeError, match="article"):
            publish()
        assert publish(Article(title="a")) == "mocked"
        assert inspect.iscoroutinefunction(archive.fn)
        assert asyncio.run(archive(article=Article(title="a"))) == "mocked"

    assert publish(Article(title="a")) == "published a"


def test_the_record_of_a_body_that_returns_a_model_has_its_defaults() -> None:
    @agent
    def write(topic: str) -> Article: ...

    store = InMemoryStateStore()
    with mock_agent(write, returns={"title": "a"}):
        result = run(write, topic="x", store=store)

    stored = asyncio.run(store.load(result.run_id))
    assert stored is not None
    assert stored.completed["write"] == {"title": "a", "tags": []}


def test_raises_goes_through_the_retries() -> None:
    with (
        mock_agent(researcher, returns="facts"),
        mock_agent(writer, raises=ConnectionError("cut")) as mock,
        pytest.raises(PipelineFailure, match="failed at node 'writer'") as failed,
    ):
        go(content, topic="x")

    assert isinstance(failed.value.cause, ConnectionError)
    assert mock.call_count == 3


def test_raises_goes_to_the_fallback() -> None:
    @agent(model="gpt-4o-mini")
    def spare(research: str) -> str:
        """Write."""

    @agent(model="claude-sonnet-4-6", fallback=spare, retry=1)
    def first(research: str) -> str:
        """Write."""

    with mock_agent(first, raises=TimeoutError) as broken, mock_agent(spare, returns="spare") as used:
        result = go(first, research="x")

    assert result.output == "spare"
    assert (broken.call_count, used.call_count) == (1, 1)
    assert result.agent_traces[0].attempts == 2


def test_events_and_record_are_those_of_a_real_run() -> None:
    @agent
    def real(topic: str) -> Article:
        return Article(title=topic)

    @agent
    def fake(topic: str) -> Article:
        raise AssertionError

    runs = []
    for step, mock in ((real, None), (fake.named("real"), {"title": "x"})):
        seen: list[Event] = []
        store = InMemoryStateStore()
        if mock is None:
            result = run(step, topic="x", store=store, observers=[seen.append])
        else:
            with mock_agent(step, returns=mock):
                result = run(step, topic="x", store=store, observers=[seen.append])
        context = asyncio.run(store.load(result.run_id))
        assert context is not None
        names = [(event.name, getattr(event, "arguments", None), getattr(event, "output", None)) for event in seen]
        runs.append(
            (names, result.output, context.completed, context.order, context.signature, context.status, result.run_id)
        )

    assert runs[0][:-1] == runs[1][:-1]


def test_a_mocked_run_is_resumed_without_the_mock() -> None:
    store = InMemoryStateStore()
    with (
        mock_agent(researcher, returns="facts"),
        mock_agent(writer, raises=ConnectionError("cut")),
        pytest.raises(PipelineFailure) as failed,
    ):
        run(content, topic="x", store=store)

    with mock_agent(researcher, returns="others") as again, mock_agent(writer, returns={"title": "Facts"}):
        result = resume(content, failed.value.run_id, store=store)

    assert result.output == "published Facts"
    assert again.call_count == 0


def test_agents_are_mocked_wherever_they_stand() -> None:
    @agent
    def join(researcher: str, other: str) -> str:
        return f"{researcher}+{other}"

    @agent(model="gpt-4o-mini")
    def other(topic: str) -> str:
        """Research."""

    @agent(model="gpt-4o-mini")
    def classify(text: str) -> str:
        """Classify."""

    inner = pipeline(classify, name="inner")
    whole = pipeline(parallel(researcher, other) >> join >> inner >> branch(yes=publish_text, no=archive_text))
    with (
        mock_agent(researcher, returns="a"),
        mock_agent(other, returns="b"),
        mock_agent(classify, returns="yes"),
        mock_agent(publish_text, returns="there") as taken,
        mock_agent(archive_text, returns="here") as not_taken,
    ):
        result = go(whole, topic="x")

    assert result.output == "there"
    assert (taken.call_count, not_taken.call_count) == (1, 0)


@agent(model="gpt-4o-mini")
def publish_text(text: str) -> str:
    """Publish."""


@agent(model="gpt-4o-mini")
def archive_text(text: str) -> str:
    """Archive."""


def test_a_copy_is_an_agent_of_its_own() -> None:
    draft = researcher.named("draft")
    polish = researcher.named("polish")
    chain = pipeline(draft >> polish)

    with mock_agent(draft, returns="draft"), mock_agent(polish, returns="polished"):
        assert go(chain, topic="x").output == "polished"
    with mock_agent(researcher, returns="original"):
        assert draft.provider is None


def test_a_copy_that_outlives_the_mock_is_real_again() -> None:
    @agent
    def greet(name: str) -> str:
        return f"hello {name}"

    with mock_agent(greet, returns="mocked"):
        copy = greet.named("copy")
        model_copy = researcher.named("copy")

    assert go(copy, name="x").output == "hello x"
    assert model_copy.provider is None


def test_the_inner_of_two_mocks_answers_and_both_end() -> None:
    outer, inner = mock_agent(researcher, returns="outer"), mock_agent(researcher, returns="inner")
    with outer:
        with inner:
            assert go(researcher, topic="x").output == "inner"
        assert go(researcher, topic="x").output == "outer"
        with outer:
            assert go(researcher, topic="x").output == "outer"
        assert go(researcher, topic="x").output == "outer"

    assert (outer.call_count, inner.call_count) == (3, 1)
    assert researcher.provider is None


def test_mocks_of_tasks_that_overlap_leave_nothing_behind() -> None:
    first, second = mock_agent(publish, returns="1"), mock_agent(publish, returns="2")
    real = publish.fn
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)

    assert publish(Article(title="a")) == "2"
    second.__exit__(None, None, None)
    assert publish.fn is real


def test_it_decorates_functions_of_every_kind() -> None:
    class Suite:
        @mock_agent(researcher, returns="method")
        def method(self, suffix: str) -> str:
            return str(go(researcher, topic="x").output) + suffix

    @mock_agent(researcher, returns="async")
    async def coroutine() -> str:
        await asyncio.sleep(0)
        return str((await arun(researcher, topic="x", store="memory://")).output)

    @mock_agent(researcher, returns="generator")
    def generator() -> Iterator[str]:
        yield go(researcher, topic="x").output

    @mock_agent(researcher, returns="async generator")
    async def async_generator() -> AsyncIterator[str]:
        yield (await arun(researcher, topic="x", store="memory://")).output

    async def consumed() -> list[str]:
        return [value async for value in async_generator()]

    assert Suite().method("!") == "method!"
    assert inspect.iscoroutinefunction(coroutine)
    assert asyncio.run(coroutine()) == "async"
    assert list(generator()) == ["generator"]
    assert asyncio.run(consumed()) == ["async generator"]
    assert researcher.provider is None


def test_a_decorator_that_is_used_twice_mocks_twice() -> None:
    mock = mock_agent(researcher, returns="facts")

    @mock
    def ask() -> str:
        return str(go(researcher, topic="x").output)

    assert [ask(), ask()] == ["facts", "facts"]
    assert mock.call_count == 2


def test_misuse_says_what_to_use() -> None:
    with pytest.raises(TypeError, match="mock_pipeline"):
        mock_agent(content)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="one by one"):
        mock_agent(parallel(researcher, archive))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="@agent"):
        mock_agent(len)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no Exception"):
        mock_agent(researcher, raises="boom")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not both"):
        mock_agent(researcher, returns="a", raises=ValueError)
    with pytest.raises(TypeError, match="methods of a class"):

        @mock_agent(researcher, returns="a")
        class Suite: ...

    with pytest.raises(TypeError, match=r"mock_agent\(researcher"):
        mock_pipeline(researcher)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes a pipeline"):
        mock_pipeline(parallel(researcher, archive))  # type: ignore[arg-type]


def test_both_are_found_in_the_testing_package() -> None:
    import n00dles_testing

    assert n00dles_testing.mock_agent is mock_agent
    assert n00dles_testing.mock_pipeline is mock_pipeline
