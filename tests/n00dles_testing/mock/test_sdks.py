"""The official SDKs, answered by `mock_llm`: every way of calling that they have, sync, async and streamed."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import openai
import pytest
from pydantic import BaseModel, Field

from n00dles_testing.llm import ToolCall
from n00dles_testing.llm.mock import MockLLM


class Article(BaseModel):
    title: str
    word_count: int = Field(alias="words", default=0)


ARTICLE = Article(title="Tools", words=3)
ASKED: list[Any] = [{"role": "user", "content": "Write about tools."}]
CHAT: dict[str, Any] = {"model": "gpt-4o-mini", "messages": ASKED}
MESSAGES: dict[str, Any] = {"model": "claude-sonnet-4-6", "max_tokens": 100, "messages": ASKED}
TOOL: dict[str, Any] = {
    "name": "search",
    "description": "Search.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
}


@pytest.fixture(scope="module")
def clients() -> dict[str, Any]:
    """One of each for all tests: making one reads certificates."""
    return {
        "openai": openai.OpenAI(api_key="sk-test", max_retries=0),
        "anthropic": anthropic.Anthropic(api_key="sk-test", max_retries=0),
    }


def test_openai_chat_completions(mock_llm: MockLLM, clients: dict[str, Any]) -> None:
    mock_llm.reply(None, "They help.", input_tokens=12, output_tokens=3)

    completion = clients["openai"].chat.completions.create(**CHAT)

    assert completion.choices[0].message.content == "They help."
    assert completion.choices[0].finish_reason == "stop"
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (12, 3)
    (call,) = mock_llm.calls
    assert (call.node, call.model, call.prompt) == ("", "gpt-4o-mini", "Write about tools.")
    assert (call.input_tokens, call.output_tokens, call.paid, call.sent) == (12, 3, True, True)
    assert call.messages == ASKED


def test_openai_chat_completions_as_a_stream(mock_llm: MockLLM, clients: dict[str, Any]) -> None:
    mock_llm.reply(None, "They help a lot.")

    stream = clients["openai"].chat.completions.create(**CHAT, stream=True)
    words = [chunk.choices[0].delta.content or "" for chunk in stream]

    assert "".join(words) == "They help a lot."
    assert len([word for word in words if word]) == 4
    assert mock_llm.calls[0].sent


def test_openai_parses_a_model_that_was_scripted_as_an_instance(mock_llm: MockLLM, clients: dict[str, Any]) -> None:
    mock_llm.reply(None, ARTICLE)

    parsed = clients["openai"].chat.completions.parse(**CHAT, response_format=Article)

    assert parsed.choices[0].message.parsed == ARTICLE


def test_openai_chat_stream_helper(mock_llm: MockLLM, clients: dict[str, Any]) -> None:
    mock_llm.reply(None, ARTICLE)

    with clients["openai"].chat.completions.stream(**CHAT, response_format=Article) as stream:
        events = [event.type for event in stream]
        completion = stream.get_final_completion()

    assert completion.choices[0].message.parsed == ARTICLE
    assert "content.delta" in events


def test_openai_tool_calls(mock_llm: MockLLM, clients: dict[str, Any]) -> None:
    mock_llm.reply(None, tool_calls=[ToolCall("search", {"query": "tools"})])
    mock_llm.reply(None, "Found.")
    tools = [{"type": "function", "function": TOOL}]

    first = clients["openai"].chat.completions.create(**CHAT, tools=tools)
    (wanted,) = first.choices[0].message.tool_calls
    result = {"role": "tool", "tool_call_id": wanted.id, "content": "a hammer"}
    second = clients["openai"].chat.completions.create(
        model="gpt-4o-mini", messages=[*ASKED, first.choices[0].message, result], tools=tools
    )

    assert first.choices[0].finish_reason == "tool_calls"
    assert (wanted.function.name, wanted.function.arguments) == ("search", '{"query": "tools"}')
    assert second.choices[0].message.content == "Found."
    assert mock_llm.calls[1].prompt == "a hammer"


def test_openai_responses(mock_llm: MockLLM, clients: dict[str, Any]) -> None:
    mock_llm.reply(None, "They help.")
    mock_llm.reply(None, ARTICLE)
    mock_llm.reply(None, "They help a lot.")

    plain = clients["openai"].responses.create(model="gpt-5", input="Write about tools.")
    parsed = clients["openai"].responses.parse(model="gpt-5", input=ASKED, text_format=Article)
    stream = clients["openai"].responses.create(model="gpt-5", input="Write.", instructions="Be brief.", stream=True)
    words = [event.delta for event in stream if event.type == "response.output_text.delta"]

    assert plain.output_text == "They help."
    assert parsed.output_parsed == ARTICLE
    assert "".join(words) == "They help a lot."
    assert mock_llm.calls[2].system == "Be brief."


def test_openai_responses_stream_helper(mock_llm: MockLLM, clients: dict[str, Any]) -> None:
    mock_llm.reply(None, ARTICLE)

    with clients["openai"].responses.stream(model="gpt-5", input="Write.", text_format=Article) as stream:
        for _ in stream:
            pass
        response = stream.get_final_response()

    assert response.output_parsed == ARTICLE


def test_anthropic_messages(mock_llm: MockLLM, clients: dict[str, Any]) -> None:
    mock_llm.reply(None, "They help.", input_tokens=12, output_tokens=3)

    message = clients["anthropic"].messages.create(**MESSAGES, system="Be brief.")

    assert message.content[0].text == "They help."
    assert (message.usage.input_tokens, message.usage.output_tokens) == (12, 3)
    assert mock_llm.calls[0].system == "Be brief."


def test_anthropic_streams(mock_llm: MockLLM, clients: dict[str, Any]) -> None:
    mock_llm.reply(None, "They help a lot.", times=2)

    events = [event.type for event in clients["anthropic"].messages.create(**MESSAGES, stream=True)]
    with clients["anthropic"].messages.stream(**MESSAGES) as stream:
        words = list(stream.text_stream)
        message = stream.get_final_message()

    assert events[0] == "message_start"
    assert events[-1] == "message_stop"
    assert words == ["They ", "help ", "a ", "lot."]
    assert message.content[0].text == "They help a lot."


def test_anthropic_tools(mock_llm: MockLLM, clients: dict[str, Any]) -> None:
    tools = [{"name": "search", "input_schema": TOOL["parameters"]}]
    mock_llm.reply(None, tool_calls=[ToolCall("search", {"query": "tools"})])
    mock_llm.reply(None, {"query": "forced"})

    chosen = clients["anthropic"].messages.create(**MESSAGES, tools=tools)
    forced = clients["anthropic"].messages.create(
        **MESSAGES, tools=tools, tool_choice={"type": "tool", "name": "search"}
    )

    assert (chosen.stop_reason, chosen.content[0].input) == ("tool_use", {"query": "tools"})
    assert forced.content[0].input == {"query": "forced"}


def test_anthropic_parses_a_model(mock_llm: MockLLM, clients: dict[str, Any]) -> None:
    mock_llm.reply(None, ARTICLE)

    message = clients["anthropic"].messages.parse(**MESSAGES, output_format=Article)

    assert message.parsed_output == ARTICLE


async def _async_openai() -> list[str]:
    async with openai.AsyncOpenAI(max_retries=0) as client:
        plain = await client.chat.completions.create(**CHAT)
        stream = await client.chat.completions.create(**CHAT, stream=True)
        streamed = [chunk.choices[0].delta.content or "" async for chunk in stream]
        response = await client.responses.create(model="gpt-5", input="Write.")
        return [plain.choices[0].message.content or "", "".join(streamed), response.output_text]


async def _async_anthropic() -> list[str]:
    async with anthropic.AsyncAnthropic(max_retries=0) as client:
        plain = await client.messages.create(**MESSAGES)
        async with client.messages.stream(**MESSAGES) as stream:
            streamed = [text async for text in stream.text_stream]
        return [getattr(plain.content[0], "text", ""), "".join(streamed)]


def test_the_async_clients(mock_llm: MockLLM) -> None:
    for text in ("one two", "three four", "five", "six", "seven eight"):
        mock_llm.reply(None, text)

    answers = asyncio.run(_async_openai()) + asyncio.run(_async_anthropic())

    assert answers == ["one two", "three four", "five", "six", "seven eight"]
    assert all(call.sent for call in mock_llm.calls)


def test_calls_that_are_made_at_once_get_the_replies_for_their_prompts(mock_llm: MockLLM) -> None:
    for number in range(10):
        mock_llm.reply(None, f"reply {number}", prompt=f"^question {number}$")

    async def ask() -> list[str | None]:
        async with openai.AsyncOpenAI() as client:
            asked = [
                client.chat.completions.create(model="m", messages=[{"role": "user", "content": f"question {number}"}])
                for number in range(10)
            ]
            return [completion.choices[0].message.content for completion in await asyncio.gather(*asked)]

    assert asyncio.run(ask()) == [f"reply {number}" for number in range(10)]


@pytest.mark.parametrize(
    "base_url",
    ["https://openrouter.ai/api/v1", "https://example.openai.azure.com/openai/v1/", "http://127.0.0.1:9/v1"],
)
def test_any_base_url_is_answered(mock_llm: MockLLM, clients: dict[str, Any], base_url: str) -> None:
    mock_llm.reply(None, "hello", model="llama")

    client = clients["openai"].with_options(base_url=base_url)

    completion = client.chat.completions.create(model="llama-4", messages=ASKED)
    assert completion.choices[0].message.content == "hello"


def test_no_key_is_needed(mock_llm: MockLLM, monkeypatch: pytest.MonkeyPatch) -> None:
    mock_llm.reply(None, "hello", times=2)

    openai.OpenAI().chat.completions.create(**CHAT)
    anthropic.Anthropic().messages.create(**MESSAGES)

    assert [call.paid for call in mock_llm.calls] == [True, True]
