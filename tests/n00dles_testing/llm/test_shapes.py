"""The three wire formats, whole and streamed, as the official SDKs read them: texts, JSON, tools, stop reasons."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest
from pydantic import BaseModel

from n00dles_testing import RateLimited, ToolCall
from n00dles_testing.llm import LLMServer
from n00dles_testing.llm.scripted_server import ScriptedServer

SEARCH = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
ANSWER = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
TOOLS = {"search": SEARCH, "answer": ANSWER}
Seen = tuple[str, list[tuple[str, Any]], str, tuple[int, int]]
"""What an SDK has made of an answer: its text, the tools it calls, why it stopped, and the tokens."""


class Article(BaseModel):
    title: str


def of_chat(client: openai.OpenAI, prompt: str, *, stream: bool, must_call: str = "") -> Seen:
    tools: Any = [{"type": "function", "function": {"name": name, "parameters": TOOLS[name]}} for name in TOOLS]
    choice: Any = {"type": "function", "function": {"name": must_call}} if must_call else "auto"
    wanted: Any = {"model": "m", "messages": [{"role": "user", "content": prompt}], "tools": tools}
    if stream:
        wanted |= {"tool_choice": choice, "stream_options": {"include_usage": True}}
        try:
            with client.chat.completions.stream(**wanted) as events:
                completion: Any = events.get_final_completion()
        except (openai.LengthFinishReasonError, openai.ContentFilterFinishReasonError) as error:
            completion = error.completion
    else:
        completion = client.chat.completions.create(**wanted, tool_choice=choice)
    (made,) = completion.choices
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in made.message.tool_calls or []]
    usage = (completion.usage.prompt_tokens, completion.usage.completion_tokens)
    return made.message.content or made.message.refusal or "", calls, made.finish_reason, usage


def of_responses(client: openai.OpenAI, prompt: str, *, stream: bool, must_call: str = "") -> Seen:
    tools: Any = [{"type": "function", "name": name, "parameters": TOOLS[name], "strict": False} for name in TOOLS]
    choice: Any = {"type": "function", "name": must_call} if must_call else "auto"
    wanted: Any = {"model": "m", "input": prompt, "tools": tools, "tool_choice": choice}
    if stream:
        # The SDK's own accumulator demands that a response is completed; a cut one is the last event all the same.
        events = list(client.responses.create(**wanted, stream=True))
        assert [event.sequence_number for event in events] == list(range(len(events)))
        response: Any = events[-1].response
        texts = "".join(event.delta for event in events if event.type.endswith(("text.delta", "refusal.delta")))
        arguments = "".join(event.delta for event in events if event.type.endswith("arguments.delta"))
        assert texts == "".join(_text(item) for item in response.output)
        assert arguments == "".join(item.arguments for item in response.output if item.type == "function_call")
    else:
        response = client.responses.create(**wanted)
    calls = [(item.name, json.loads(item.arguments)) for item in response.output if item.type == "function_call"]
    why = response.incomplete_details.reason if response.incomplete_details else response.status
    usage = (response.usage.input_tokens, response.usage.output_tokens)
    return "".join(_text(item) for item in response.output), calls, why, usage


def of_messages(client: anthropic.Anthropic, prompt: str, *, stream: bool, must_call: str = "") -> Seen:
    tools: Any = [{"name": name, "input_schema": TOOLS[name]} for name in TOOLS]
    choice: Any = {"type": "tool", "name": must_call} if must_call else {"type": "auto"}
    wanted: Any = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": prompt}]}
    if stream:
        with client.messages.stream(**wanted, tools=tools, tool_choice=choice) as events:
            message: Any = events.get_final_message()
    else:
        message = client.messages.create(**wanted, tools=tools, tool_choice=choice)
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
    return text, calls, message.stop_reason, (message.usage.input_tokens, message.usage.output_tokens)


def _text(item: Any) -> str:
    parts = item.content if item.type == "message" else []
    return "".join(part.refusal if part.type == "refusal" else part.text for part in parts)


STOPS = {
    "openai": {"end": "stop", "length": "length", "filter": "content_filter", "refusal": "stop", "tool": "tool_calls"},
    "openai-responses": {
        **{"end": "completed", "length": "max_output_tokens", "filter": "content_filter"},
        **{"refusal": "completed", "tool": "completed"},
    },
    "anthropic": {
        **{"end": "end_turn", "length": "max_tokens", "filter": "refusal", "refusal": "refusal", "tool": "tool_use"},
    },
}


@pytest.fixture(params=STOPS)
def shape(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def ask(shape: str, openai_client: openai.OpenAI, anthropic_client: anthropic.Anthropic) -> Callable[..., Seen]:
    """Ask in one shape, whole and streamed, and return what came if it is the same both times."""
    ways: dict[str, Callable[..., Seen]] = {
        "openai": lambda *what, **how: of_chat(openai_client, *what, **how),
        "openai-responses": lambda *what, **how: of_responses(openai_client, *what, **how),
        "anthropic": lambda *what, **how: of_messages(anthropic_client, *what, **how),
    }

    def twice(prompt: str, must_call: str = "") -> Seen:
        whole, streamed = (ways[shape](prompt, stream=stream, must_call=must_call) for stream in (False, True))
        assert whole[:3] == streamed[:3]
        assert whole[3][1] == streamed[3][1]
        return whole

    return twice


@pytest.mark.parametrize("stop", ["end", "length", "filter", "refusal"])
def test_a_text_and_its_stop_reason(llm: ScriptedServer, ask: Callable[..., Seen], shape: str, stop: str) -> None:
    llm.reply(None, "Once upon  a\ntime, ünï.", stop=stop, times=2, input_tokens=40, output_tokens=2)

    assert ask("Go on.") == ("Once upon  a\ntime, ünï.", [], STOPS[shape][stop], (40, 2))

    assert {(call.shape, call.prompt, call.messages[-1]["role"]) for call in llm.calls} == {(shape, "Go on.", "user")}


def test_tool_calls_come_after_the_text(llm: ScriptedServer, ask: Callable[..., Seen], shape: str) -> None:
    calls = [ToolCall("search", {"query": "tools, and  more"}), ToolCall("answer", {"title": "ü"}), ToolCall("search")]
    llm.reply(None, "Let me look.", tool_calls=calls, times=2)

    text, made, stop, _ = ask("Go on.")

    assert (text, made, stop) == (
        "Let me look.",
        [("search", {"query": "tools, and  more"}), ("answer", {"title": "ü"}), ("search", {})],
        STOPS[shape]["tool"],
    )
    assert llm.calls[0].tool_calls[1] == {"name": "answer", "arguments": {"title": "ü"}}


def test_tool_calls_without_a_text(llm: ScriptedServer, ask: Callable[..., Seen]) -> None:
    llm.reply(None, tool_calls=[ToolCall("search", {"query": "x"})], times=2)

    assert ask("Go on.")[:2] == ("", [("search", {"query": "x"})])


def test_a_model_is_the_input_of_the_tool_that_must_be_called(
    llm: ScriptedServer, ask: Callable[..., Seen], shape: str
) -> None:
    llm.reply(None, Article(title="Tools"), times=4)

    assert ask("Go on.", "answer")[:3] == ("", [("answer", {"title": "Tools"})], STOPS[shape]["tool"])
    assert ask("Go on.")[:3] == ('{"title": "Tools"}', [], STOPS[shape]["end"])


def test_a_tool_that_is_not_offered_is_not_called(llm: ScriptedServer, openai_client: openai.OpenAI) -> None:
    scripted = ScriptedServer(llm._server, "not-offered")
    client = openai_client.with_options(base_url=scripted.environment["OPENAI_BASE_URL"])
    scripted.reply(None, tool_calls=[ToolCall("delete_all")])

    with pytest.raises(openai.BadRequestError, match=r"calls the tool 'delete_all', and .* offers search"):
        of_chat(client, "x", stream=False)

    assert "delete_all" in scripted.problems()[0]


def test_a_conversation_is_recorded_alike_in_all_shapes(
    llm: ScriptedServer, openai_client: openai.OpenAI, anthropic_client: anthropic.Anthropic
) -> None:
    turns: Any = [("user", "Look."), ("assistant", "I look."), ("user", "And?")]
    messages: Any = [{"role": role, "content": text} for role, text in turns]
    parts: Any = [{"role": role, "content": [{"type": "text", "text": text}]} for role, text in turns]
    llm.reply(None, "Nothing.", times=3)

    openai_client.chat.completions.create(model="m", messages=[{"role": "system", "content": "Be brief."}, *messages])
    openai_client.responses.create(model="m", instructions="Be brief.", input=messages)
    anthropic_client.messages.create(model="m", max_tokens=9, system="Be brief.", messages=parts)

    recorded = [{"role": "system", "content": "Be brief."}, *messages]
    assert [call.messages for call in llm.calls] == [recorded] * 3
    assert {(call.system, call.prompt) for call in llm.calls} == {("Be brief.", "And?")}


def test_what_a_tool_has_returned_is_part_of_the_conversation(
    llm: ScriptedServer, openai_client: openai.OpenAI, anthropic_client: anthropic.Anthropic
) -> None:
    call: Any = {"type": "function", "id": "c", "function": {"name": "search", "arguments": "{}"}}
    used: Any = {"type": "tool_use", "id": "c", "name": "search", "input": {}}
    gone: Any = {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "found"}]}
    made: Any = {"type": "function_call", "call_id": "c", "name": "search", "arguments": "{}"}
    got: Any = {"type": "function_call_output", "call_id": "c", "output": "found"}
    llm.reply(None, "Nothing.", times=3, prompt="^found$")

    chat: Any = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": "found"}]
    openai_client.chat.completions.create(model="m", messages=chat)
    openai_client.responses.create(model="m", input=[made, got])
    messages: Any = [{"role": "assistant", "content": [used]}, {"role": "user", "content": [gone]}]
    anthropic_client.messages.create(model="m", max_tokens=9, messages=messages)

    assert [each.messages[-1]["role"] for each in llm.calls] == ["tool", "function_call_output", "user"]


def test_structured_output_of_the_responses_api_is_parsed(llm: ScriptedServer, openai_client: openai.OpenAI) -> None:
    llm.reply(None, Article(title="Tools"))

    answer = openai_client.responses.parse(model="m", input="x", text_format=Article)

    assert answer.output_parsed == Article(title="Tools")


def test_the_streaming_helper_of_the_responses_api_reads_texts_and_calls(
    llm: ScriptedServer, openai_client: openai.OpenAI
) -> None:
    llm.reply(None, "Let me look.", tool_calls=[ToolCall("search", {"query": "x"})])
    tools: Any = [{"type": "function", "name": "search", "parameters": SEARCH, "strict": False}]

    with openai_client.responses.stream(model="m", input="x", tools=tools) as events:
        response: Any = events.get_final_response()

    assert response.output_text == "Let me look."
    assert response.output[1].arguments == '{"query": "x"}'


def test_a_request_that_is_no_call_of_a_model_fails_the_test_by_name(
    llm: ScriptedServer, openai_client: openai.OpenAI
) -> None:
    scripted = ScriptedServer(llm._server, "embeds")
    client = openai_client.with_options(base_url=scripted.environment["OPENAI_BASE_URL"])

    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="m", input="x")

    (problem,) = scripted.problems()
    assert "POST /v1/embeddings is not served here; what is: POST …/chat/completions" in problem


def test_without_a_script_a_tool_that_must_be_called_gets_an_input_of_its_schema(
    server: Any, openai_client: openai.OpenAI
) -> None:
    client = openai_client.with_options(base_url=server.environment["OPENAI_BASE_URL"])

    whole = [way(client, "x", stream=False, must_call="answer") for way in (of_chat, of_responses)]

    assert [[name for name, _ in calls] for _, calls, _, _ in whole] == [["answer"], ["answer"]]
    assert all(isinstance(calls[0][1]["title"], str) for _, calls, _, _ in whole)


def test_a_server_without_the_v1_of_openai_is_served_as_well(llm: ScriptedServer, openai_client: openai.OpenAI) -> None:
    llm.reply(None, "Here.")
    base = llm.environment["OPENAI_BASE_URL"].removesuffix("/v1")

    answer = openai_client.with_options(base_url=base).responses.create(model="m", input="x")

    assert answer.output_text == "Here."


def test_an_answer_has_the_id_that_sdks_tell_their_users(
    running_server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted = ScriptedServer(running_server, "ids-")
    for name, value in scripted.environment.items():
        monkeypatch.setenv(name, value)
    scripted.reply(None, "Here.", times=2)
    scripted.fail(None, RateLimited())

    with openai.OpenAI(max_retries=0) as of_openai, anthropic.Anthropic(max_retries=0) as of_anthropic:
        ids = [
            of_openai.responses.create(model="m", input="x")._request_id,
            of_anthropic.messages.create(
                model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}]
            )._request_id,
        ]
        with pytest.raises(openai.RateLimitError) as limited:
            of_openai.responses.create(model="m", input="x")

    assert [*ids, limited.value.request_id] == ["req_ids-00000001", "req_ids-00000002", "req_ids-00000003"]


def test_the_parts_of_the_usage_that_programs_add_up_are_numbers(
    llm: ScriptedServer, openai_client: openai.OpenAI, anthropic_client: anthropic.Anthropic
) -> None:
    llm.reply(None, "Here.", input_tokens=5, output_tokens=7, times=2)
    messages: Any = [{"role": "user", "content": "x"}]

    chat: Any = openai_client.chat.completions.create(model="m", messages=messages).usage
    message: Any = anthropic_client.messages.create(model="m", max_tokens=9, messages=messages).usage

    assert chat.prompt_tokens - chat.prompt_tokens_details.cached_tokens == 5
    assert chat.completion_tokens - chat.completion_tokens_details.reasoning_tokens == 7
    assert message.input_tokens + message.cache_creation_input_tokens + message.cache_read_input_tokens == 5
