"""Pipelines of n00dles under `mock_llm`: replies by node, what the executor does with faults, what the journal says."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Literal

import openai
import pytest
from pydantic import BaseModel

from n00dles import PipelineFailure, RetryPolicy, agent, arun, branch, pipeline, run
from n00dles_testing.llm import faults as f
from n00dles_testing.llm.mock import MockLLM

AT_ONCE = RetryPolicy(max_attempts=3, base_delay=0, jitter=False)
ONCE = RetryPolicy(max_attempts=1)


class Article(BaseModel):
    title: str
    tags: list[str] = []


@agent(model="gpt-4o-mini", retry=AT_ONCE)
def researcher(topic: str) -> str:
    """Research the topic."""


@agent(model="claude-sonnet-4-6", retry=AT_ONCE)
def writer(research: str) -> Article:
    """Write an article."""


@agent(model="gpt-4o-mini", retry=AT_ONCE)
def critic(research: str) -> str:
    """Find what is wrong."""


content = pipeline(researcher >> writer, name="content")


def test_each_node_gets_its_reply(mock_llm: MockLLM) -> None:
    mock_llm.reply("writer", Article(title="Tools", tags=["a"]))
    mock_llm.reply("researcher", "Three facts.")

    result = run(content, topic="tools")

    assert result.output == Article(title="Tools", tags=["a"])
    assert [(call.node, call.model, call.prompt) for call in mock_llm.calls] == [
        ("researcher", "gpt-4o-mini", "tools"),
        ("writer", "claude-sonnet-4-6", "Three facts."),
    ]
    assert mock_llm.calls[0].messages == [
        {"role": "system", "content": "Research the topic."},
        {"role": "user", "content": "tools"},
    ]
    assert result.total_tokens == sum(call.input_tokens + call.output_tokens for call in mock_llm.calls)


def test_an_agent_itself_names_its_node(mock_llm: MockLLM) -> None:
    mock_llm.reply(researcher, "Three facts.")
    mock_llm.reply(writer.named("polish"), Article(title="Tools"))

    result = run(pipeline(researcher >> writer.named("polish"), name="polished"), topic="tools")

    assert result.output.title == "Tools"


def test_replies_of_one_node_come_in_order_and_not_in_a_circle(mock_llm: MockLLM) -> None:
    mock_llm.reply("researcher", "one")
    mock_llm.reply("researcher", "two")
    alone = pipeline(researcher, name="alone")

    outputs = [run(alone, topic="x").output for _ in range(2)]

    assert outputs == ["one", "two"]
    assert mock_llm.unused == []


def test_members_of_a_fan_out_are_told_apart(mock_llm: MockLLM) -> None:
    mock_llm.reply("researcher", "facts")
    mock_llm.reply("critic", "too short")
    mock_llm.reply("writer", Article(title="T"))

    result = run(pipeline(researcher >> (writer | critic), name="both"), topic="x")

    assert result.output == {"writer": Article(title="T"), "critic": "too short"}


def test_a_route_is_chosen_by_what_a_node_was_scripted_to_say(mock_llm: MockLLM) -> None:
    @agent(model="gpt-4o-mini")
    def triage(ticket: str) -> Literal["billing", "support"]:
        """Which team?"""

    @agent
    def billing(triage: str) -> str:
        return "an invoice"

    @agent
    def support(triage: str) -> str:
        return "a repair"

    mock_llm.reply("triage", "support")

    result = run(pipeline(triage >> branch(billing=billing, support=support), name="desk"), ticket="it broke")

    assert result.output == "a repair"


@pytest.mark.parametrize("model", ["gpt-4o-mini", "claude-sonnet-4-6"])
def test_a_node_that_returns_a_list_is_scripted_with_one(mock_llm: MockLLM, model: str) -> None:
    @agent(model=model)
    def tags(text: str) -> list[str]:
        """Which tags?"""

    mock_llm.reply("tags", ["a", "b"])

    assert run(pipeline(tags, name="tags"), text="x").output == ["a", "b"]
    assert mock_llm.calls[0].reply == '{"value": ["a", "b"]}'


def test_sdk_calls_in_bodies_have_the_node_of_the_body(mock_llm: MockLLM) -> None:
    @agent
    def sync_body(topic: str) -> str:
        asked: Any = [{"role": "user", "content": topic}]
        return openai.OpenAI().chat.completions.create(model="m", messages=asked).choices[0].message.content or ""

    @agent
    async def async_body(topic: str) -> str:
        async with openai.AsyncOpenAI() as client:
            asked: Any = [{"role": "user", "content": topic}]
            answers = await asyncio.gather(
                *(client.chat.completions.create(model="m", messages=asked) for _ in range(2))
            )
        return " ".join(answer.choices[0].message.content or "" for answer in answers)

    mock_llm.reply("sync_body", "from a thread")
    mock_llm.reply("async_body", "gathered", times=2)

    result = run(pipeline(sync_body | async_body, name="bodies"), topic="x")

    assert result.output == {"sync_body": "from a thread", "async_body": "gathered gathered"}


def test_runs_in_threads_and_side_by_side(mock_llm: MockLLM) -> None:
    mock_llm.reply("researcher", "facts", times=6)
    alone = pipeline(researcher, name="alone")

    with ThreadPoolExecutor(2) as threads:
        in_threads = [threads.submit(copy_context().run, run, alone, topic="x") for _ in range(3)]

    async def at_once() -> list[Any]:
        return [result.output for result in await asyncio.gather(*(arun(alone, topic="x") for _ in range(3)))]

    assert [each.result().output for each in in_threads] == ["facts"] * 3
    assert asyncio.run(at_once()) == ["facts"] * 3


@pytest.mark.parametrize(
    ("fault", "paid"),
    [
        (f.RateLimited(retry_after=0), [False, True]),
        (f.ServerError(status=503), [False, True]),
        (f.Overloaded(), [False, True]),
        (f.Hangs(), [False, True]),
        (f.ConnectionReset(), [False, True]),
        (f.DropsMidStream(), [True, True]),
        (f.TruncatedJSON(), [True, True]),
        (f.MalformedJSON(), [True, True]),
        (f.LostReply(), [True, True]),
        (f.Refusal("I won't."), [True, True]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("model", ["gpt-4o-mini", "claude-sonnet-4-6"])
def test_the_executor_tries_again_after_a_fault(
    mock_llm: MockLLM, model: str, fault: f.Fault, paid: list[bool]
) -> None:
    @agent(model=model, retry=AT_ONCE)
    def asked(topic: str) -> str:
        """Answer."""

    mock_llm.fail("asked", fault, then="ok")

    result = run(pipeline(asked, name="asked"), topic="x")

    assert result.output == "ok"
    assert [call.paid for call in mock_llm.calls] == paid
    assert mock_llm.calls[0].fault == repr(fault)


@pytest.mark.parametrize(
    "fault", [f.WrongSchema(), f.TruncatedJSON(of="answer"), f.MalformedJSON(of="answer")], ids=repr
)
def test_an_answer_that_does_not_fit_is_asked_for_again(mock_llm: MockLLM, fault: f.Fault) -> None:
    mock_llm.reply("researcher", "facts")
    mock_llm.fail("writer", fault, then=Article(title="Tools"))

    assert run(content, topic="x").output == Article(title="Tools")
    assert [call.node for call in mock_llm.calls] == ["researcher", "writer", "writer"]


def test_a_node_that_keeps_failing_fails_the_run(mock_llm: MockLLM) -> None:
    mock_llm.fail("researcher", f.RateLimited(message="slow down"), times=3)

    with pytest.raises(PipelineFailure, match="slow down"):
        run(content, topic="x")

    assert [call.node for call in mock_llm.calls] == ["researcher"] * 3


def test_a_fallback_steps_in_for_a_node_that_fails(mock_llm: MockLLM) -> None:
    @agent(model="claude-sonnet-4-6", retry=ONCE, fallback=researcher)
    def expert(topic: str) -> str:
        """Know everything."""

    mock_llm.fail(None, f.Overloaded(), model="claude")
    mock_llm.reply(None, "the fallback's", model="gpt")

    result = run(pipeline(expert, name="guarded"), topic="x")

    assert result.output == "the fallback's"
    assert {call.node for call in mock_llm.calls} == {"expert"}
