"""Frameworks on top of the SDKs and beside them: pydantic-ai, and litellm, whose async calls come over aiohttp."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from n00dles_testing.llm import ToolCall
from n00dles_testing.llm.mock import MockLLM
from n00dles_testing.llm.scripted_server import ScriptedServer

pytestmark = pytest.mark.filterwarnings("ignore")  # what these packages warn of is their own affair

ASKED: list[Any] = [{"role": "user", "content": "Write about tools."}]
MODELS = pytest.mark.parametrize(
    "model", ["openai-chat:gpt-5", "openai-responses:gpt-5", "anthropic:claude-sonnet-4-6"]
)
LITELLM = pytest.mark.parametrize("model", ["openai/gpt-4o-mini", "anthropic/claude-sonnet-4-6"])


class Article(BaseModel):
    title: str


@pytest.fixture
def litellm(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else its import fetches a list of prices
    return pytest.importorskip("litellm")


@MODELS
def test_pydantic_ai(mock_llm: MockLLM, model: str) -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai")
    mock_llm.reply(None, "They help.")
    mock_llm.reply(None, Article(title="Tools"))
    agent = pydantic_ai.Agent(model, instructions="Be brief.")

    text = agent.run_sync("Write about tools.")
    typed = agent.run_sync("Write about tools.", output_type=Article)

    assert text.output == "They help."
    assert typed.output == Article(title="Tools")
    assert "Be brief." in mock_llm.calls[0].system  # for Anthropic there is an introduction of its own, too
    assert mock_llm.calls[0].prompt == "Write about tools."
    assert text.usage.output_tokens == mock_llm.calls[0].output_tokens


@MODELS
def test_pydantic_ai_tools_and_streams(mock_llm: MockLLM, model: str) -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai")
    mock_llm.reply(None, tool_calls=[ToolCall("search", {"query": "tools"})])
    mock_llm.reply(None, "They help a lot.", prompt="^found tools$")

    def search(query: str) -> str:
        return f"found {query}"

    agent = pydantic_ai.Agent(model, tools=[search])

    async def ask() -> str:
        async with agent.run_stream("Write about tools.") as result:
            return "".join([text async for text in result.stream_text(delta=True)])

    assert asyncio.run(ask()) == "They help a lot."


@LITELLM
def test_litellm_sync(mock_llm: MockLLM, litellm: Any, model: str) -> None:
    mock_llm.reply(None, "They help a lot.", times=2)

    plain = litellm.completion(model=model, messages=ASKED)
    streamed = litellm.completion(model=model, messages=ASKED, stream=True)

    assert plain.choices[0].message.content == "They help a lot."
    assert "".join(chunk.choices[0].delta.content or "" for chunk in streamed) == "They help a lot."
    assert plain.usage.completion_tokens == mock_llm.calls[0].output_tokens


@LITELLM
def test_litellm_async_needs_the_server(llm_server: ScriptedServer, litellm: Any, model: str) -> None:
    llm_server.reply(None, "They help a lot.", times=2)

    async def ask() -> list[str]:
        plain = await litellm.acompletion(model=model, messages=ASKED)
        streamed = await litellm.acompletion(model=model, messages=ASKED, stream=True)
        words = [chunk.choices[0].delta.content or "" async for chunk in streamed]
        return [plain.choices[0].message.content, "".join(words)]

    assert asyncio.run(ask()) == ["They help a lot."] * 2
