"""What `@agent` makes of a function."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel

from n00dles import Agent, LLMResponse, RetryPolicy, agent, run
from n00dles.errors import ConfigurationError, PipelineBuildError


class Article(BaseModel):
    title: str


class FakeProvider:
    """Answers with a fixed text and keeps what it was asked."""

    name = "fake"

    def __init__(self, answer: str = "answer") -> None:
        self.answer = answer
        self.asked: list[tuple[str, str, dict[str, Any]]] = []

    async def complete(self, prompt: str, system: str, **settings: Any) -> LLMResponse:
        self.asked.append((prompt, system, settings))
        return LLMResponse(content=self.answer, input_tokens=7, output_tokens=3, model="m", provider="fake")


def test_a_bare_decorator_makes_a_node_of_a_body() -> None:
    @agent
    def publish(article: Article, *, draft: bool = False) -> dict[str, str]:
        return {"title": article.title}

    assert (publish.name, publish.model) == ("publish", None)
    assert list(publish.parameters) == ["article", "draft"]
    declared: Any = {"article": Article, "draft": bool}
    assert publish.annotations == declared
    assert publish.returns == dict[str, str]
    assert publish(Article(title="T")) == {"title": "T"}


def test_a_docstring_is_the_system_prompt_and_the_annotation_the_contract() -> None:
    provider = FakeProvider('{"title": "T"}')

    @agent("some-model", provider=provider, temperature=0.5, max_tokens=10)
    def writer(research: str) -> Article:
        """Write an article.

        Be brief.
        """

    result = run(writer, store="memory://", research="facts")

    assert result.output == Article(title="T")
    assert provider.asked == [
        (
            "facts",
            "Write an article.\n\nBe brief.",
            {"model": "some-model", "temperature": 0.5, "max_tokens": 10, "schema": Article.model_json_schema()},
        )
    ]


def test_prompt_overrides_the_docstring_and_unset_settings_are_not_sent() -> None:
    provider = FakeProvider()

    @agent(model="some-model", prompt="Other.", provider=provider)
    def researcher(topic: str, depth: int) -> str:
        """Ignored."""

    result = run(researcher, store="memory://", topic="x", depth=2)

    assert (result.output, result.total_tokens) == ("answer", 10)
    assert provider.asked == [('{"topic":"x","depth":2}', "Other.", {"model": "some-model"})]


def test_a_model_is_told_the_defaults_of_parameters_that_nothing_fills() -> None:
    provider = FakeProvider()

    @agent(model="some-model", provider=provider)
    def writer(topic: str, style: str = "plain", length: int | None = None) -> str:
        """Write."""

    run(writer, store="memory://", topic="x")
    run(writer, store="memory://", topic="x", style="wild", length=3)

    assert [prompt for prompt, _, _ in provider.asked] == [
        '{"topic":"x","style":"plain"}',
        '{"topic":"x","style":"wild","length":3}',
    ]


def test_a_model_without_a_return_annotation_gives_text() -> None:
    @agent(model="some-model", provider=FakeProvider("12"))
    def counter(topic):  # type: ignore[no-untyped-def]
        """Count."""

    assert counter.returns is str
    assert run(counter, store="memory://", topic="x").output == "12"


def test_types_that_are_local_to_a_function_are_found() -> None:
    class Local(BaseModel):
        x: int

    @agent
    def make(x: int) -> Local:
        return Local(x=x)

    assert make.returns is Local
    assert run(make, store="memory://", x=1).output == Local(x=1)


def test_an_annotation_that_cannot_be_resolved_says_what_to_do() -> None:
    @agent
    def make(x: Missing) -> int:  # type: ignore[name-defined] # noqa: F821
        return 1

    with pytest.raises(PipelineBuildError, match=r"annotation of agent 'make' cannot be resolved.*Define or import"):
        run(make, store="memory://", x=1)


def test_a_renamed_agent_is_another_node_of_the_same_function() -> None:
    @agent(retry=2, timeout=5)
    def writer(text: str) -> str:
        return text

    polish = writer.named("polish")

    assert (polish.name, polish.fn, polish.retry, polish.timeout) == ("polish", writer.fn, RetryPolicy(2), 5)
    assert (writer.name, writer.signature) == ("writer", "writer(text: str) -> str")
    assert polish.signature == "polish(text: str) -> str"
    assert run(writer >> polish, store="memory://", text="x").agent_traces[1].name == "polish"


def test_an_agent_can_be_made_of_any_callable() -> None:
    class Adder:
        def __call__(self, x: int) -> int:
            return x + 1

    def add(x: int, y: int) -> int:
        return x + y

    for made in (Agent(Adder()).named("adder"), agent(partial(add, y=1)).named("adder")):
        assert run(made, store="memory://", x=1).output == 2


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"prompt": "p"}, "settings of a model"),
        ({"temperature": 0.0}, "settings of a model"),
        ({"max_tokens": 5}, "settings of a model"),
        ({"provider": FakeProvider()}, "settings of a model"),
        ({"timeout": 0}, "positive number of seconds"),
        ({"timeout": -1}, "positive number of seconds"),
        ({"timeout": float("nan")}, "positive number of seconds"),
        ({"retry": 0}, "no attempt at all"),
        ({"retry": True}, "neither a number of attempts nor a RetryPolicy"),
        ({"retry": "3"}, "neither a number of attempts nor a RetryPolicy"),
        ({"fallback": len}, "must be an agent"),
    ],
)
def test_settings_that_mean_nothing_are_refused_when_the_agent_is_made(settings: dict[str, Any], what: str) -> None:
    def node(x: int) -> int:
        return x

    with pytest.raises(PipelineBuildError, match=what):
        agent(**settings)(node)


@pytest.mark.parametrize(
    "fn",
    [lambda *args: 1, lambda **options: 1, eval("lambda x, /: 1")],
    ids=["*args", "**options", "positional only"],
)
def test_parameters_that_cannot_be_passed_by_name_are_refused(fn: Any) -> None:
    fn.__name__ = "node"

    with pytest.raises(PipelineBuildError, match="passed by name"):
        agent(fn)


@pytest.mark.parametrize("name", ["", "a b", "a[b]", "a,b", "<lambda>", "../x", None])
def test_a_name_that_is_no_name_is_refused(name: Any) -> None:
    @agent
    def node(x: int) -> int:
        return x

    with pytest.raises(PipelineBuildError, match="cannot be the name of a node"):
        node.named(name)


def test_a_retry_policy_waits_longer_each_time_up_to_its_limit() -> None:
    policy = RetryPolicy(max_attempts=9, base_delay=1.0, max_delay=5.0, jitter=False)

    delays = [policy.delay(failed) for failed in (1, 2, 3, 4, 5000)]

    assert delays == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert all(5.0 <= RetryPolicy(max_delay=5.0).delay(9) <= 5.5 for _ in range(50))
    assert RetryPolicy(base_delay=0).delay(3) == 0


def test_a_retry_policy_that_waits_less_than_nothing_is_refused() -> None:
    with pytest.raises(PipelineBuildError, match="cannot be negative"):
        RetryPolicy(base_delay=-1)


def test_a_model_agent_has_no_body_to_call() -> None:
    @agent(model="gpt-4o-mini")
    def researcher(topic: str) -> str:
        """Research."""

    with pytest.raises(TypeError, match="has a model and no body"):
        researcher("x")


def test_a_model_that_no_provider_is_known_for_is_refused_before_any_call() -> None:
    calls = []

    @agent
    def first(x: int) -> int:
        calls.append(x)
        return x

    @agent(model="llama-3")
    def second(x: int) -> str:
        """Say."""

    with pytest.raises(ConfigurationError, match="provider="):
        run(first >> second, store="memory://", x=1)

    assert calls == []
