"""What both providers owe: one request, exact tokens, clear errors, no trace left in an event loop."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
from typing import Any

import anthropic
import openai
import pytest
from pydantic import BaseModel

from n00dles.errors import AnswerError, ConfigurationError
from n00dles.providers import AnthropicProvider, LLMResponse, OpenAIProvider
from n00dles_testing.llm import LLMServer, Reply

AnyProvider = OpenAIProvider | AnthropicProvider
MODELS = {OpenAIProvider: "gpt-4o-mini", AnthropicProvider: "claude-sonnet-4-6"}


class Fact(BaseModel):
    claim: str
    source: str | None = None


class Article(BaseModel):
    title: str
    facts: list[Fact]


@pytest.fixture(params=list(MODELS), ids=["openai", "anthropic"])
def kind(request: pytest.FixtureRequest) -> type[AnyProvider]:
    chosen: type[AnyProvider] = request.param
    return chosen


def ask(provider: AnyProvider, prompt: str = "agentic search", system: str = "Be brief.", **kwargs: Any) -> LLMResponse:
    """One call in a loop of its own, as `run` makes it."""
    return asyncio.run(provider.complete(prompt, system, **{"model": MODELS[type(provider)], **kwargs}))


def ask_scripted(kind: type[AnyProvider], *script: str | Reply, **kwargs: Any) -> LLMResponse:
    with LLMServer(script) as server, server.in_environment():
        return ask(kind(), **kwargs)


def test_an_answer_carries_the_text_and_the_tokens_that_were_billed(kind: type[AnyProvider], server: LLMServer) -> None:
    provider = kind()

    response = ask(provider, "agentic search", "Be brief.", temperature=0.25, max_tokens=500)

    (call,) = server.journal()
    assert (call.prompt, call.system, call.model) == ("agentic search", "Be brief.", MODELS[kind])
    assert call.body["temperature"] == 0.25
    assert call.body.get("max_tokens", call.body.get("max_completion_tokens")) == 500
    assert (response.content, response.model) == (call.reply, MODELS[kind])
    assert (response.input_tokens, response.output_tokens) == (call.input_tokens, call.output_tokens)
    assert min(response.input_tokens, response.output_tokens, response.latency_ms) > 0
    assert response.provider == provider.name


def test_an_empty_system_prompt_and_unset_settings_are_not_sent(kind: type[AnyProvider], server: LLMServer) -> None:
    ask(kind(), "hello", "")

    (call,) = server.journal()
    expected = {"model": MODELS[kind], "messages": [{"role": "user", "content": "hello"}]}
    assert call.body == expected | ({"max_tokens": 8192} if kind is AnthropicProvider else {})


@pytest.mark.parametrize(
    "declared",
    [
        Article.model_json_schema(),
        {"type": "array", "items": {"type": "integer"}, "minItems": 1},
        {"enum": ["yes", "no"]},
    ],
    ids=["model", "list", "literal"],
)
def test_an_answer_to_a_schema_is_json_of_it_whatever_its_root(
    kind: type[AnyProvider], server: LLMServer, declared: dict[str, Any]
) -> None:
    answer = json.loads(ask(kind(), schema=declared).content)

    (call,) = server.journal()
    sent = json.dumps(call.body.get("response_format", call.body.get("output_config")))
    assert '"additionalProperties": false' in sent
    if "title" in declared:
        assert Article.model_validate(answer).model_dump() == answer
    elif "items" in declared:
        assert answer
        assert all(type(item) is int for item in answer)
    else:
        assert answer in ("yes", "no")


def test_a_schema_with_free_keys_is_sent_as_it_is_and_not_emptied(kind: type[AnyProvider], server: LLMServer) -> None:
    free = {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1}

    answer = json.loads(ask(kind(), schema=free).content)

    (call,) = server.journal()
    assert answer
    assert all(type(value) is int for value in answer.values())
    if kind is OpenAIProvider:
        assert call.body["response_format"]["json_schema"] == {"name": "answer", "schema": free, "strict": False}
    else:
        assert call.body["tools"][0]["input_schema"] == free
        assert call.body["tool_choice"] == {"type": "tool", "name": "give_answer"}


def test_the_same_call_sends_the_same_bytes_in_every_process(kind: type[AnyProvider], server: LLMServer) -> None:
    ask(kind(), schema=Article.model_json_schema())
    code = (
        "import asyncio, sys; from n00dles.providers import provider_for\n"
        f"asyncio.run(provider_for({MODELS[kind]!r}).complete('agentic search', 'Be brief.', model={MODELS[kind]!r}, "
        f"schema={Article.model_json_schema()!r}))"
    )

    subprocess.run([sys.executable, "-c", code], check=True)

    first, second = server.journal()
    assert first.body_sha256 == second.body_sha256
    assert first.reply == second.reply


def test_calls_in_one_loop_after_another_leave_nothing_behind(kind: type[AnyProvider], server: LLMServer) -> None:
    provider = kind()

    answers = [ask(provider, f"prompt {number}").content for number in range(3)]
    gc.collect()  # what nobody closed would complain here, and a warning is an error

    assert answers == [call.reply for call in server.journal()]
    assert not provider._clients._held


def count_clients(clients: Any) -> list[object]:
    made: list[object] = []
    make = clients._make

    def counted() -> object:
        made.append(make())
        return made[-1]

    clients._make = counted
    return made


def test_calls_at_once_share_one_client_and_closing_spares_a_call_under_way(
    kind: type[AnyProvider], server: LLMServer
) -> None:
    provider = kind()
    clients: Any = provider._clients
    made = count_clients(clients)

    async def two_runs() -> list[LLMResponse]:
        calls = [asyncio.create_task(provider.complete(f"{n}", "", model=MODELS[kind])) for n in range(4)]
        while not any(held.borrowers for held in clients._held.values()):
            await asyncio.sleep(0)
        await provider.aclose()  # another run ends in the same loop
        answers = await asyncio.gather(*calls)
        await provider.aclose()
        await provider.aclose()
        return [*answers, await provider.complete("after", "", model=MODELS[kind])]

    answers = asyncio.run(two_runs())

    assert sorted(answer.content for answer in answers) == sorted(call.reply for call in server.journal())
    assert len(made) == 2


def test_a_changed_base_url_counts_from_the_next_call_in_the_same_loop(kind: type[AnyProvider]) -> None:
    """Test suites with one loop for many tests start a server for each test."""
    provider = kind()

    async def two_tests() -> list[str]:
        answers = []
        for text in ("from the first", "from the second"):
            with LLMServer([Reply(text=text, times=2)]) as server, server.in_environment():
                calls = (provider.complete("x", "", model=MODELS[kind]) for _ in range(2))
                answers += [response.content for response in await asyncio.gather(*calls)]
        return answers

    answers = asyncio.run(two_tests())
    gc.collect()

    assert answers == ["from the first"] * 2 + ["from the second"] * 2


def test_a_change_while_a_call_is_under_way_does_not_disturb_it(
    kind: type[AnyProvider], server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = kind()
    clients: Any = provider._clients

    async def overlapping() -> list[LLMResponse]:
        first = asyncio.create_task(provider.complete("first", "", model=MODELS[kind]))
        while not any(held.borrowers for held in clients._held.values()):
            await asyncio.sleep(0)
        monkeypatch.setenv(f"{provider.name.upper()}_API_KEY", "sk-another")
        second = await provider.complete("second", "", model=MODELS[kind])
        return [await first, second]

    answers = asyncio.run(overlapping())
    gc.collect()

    replies = {call.prompt: call.reply for call in server.journal()}
    assert [answer.content for answer in answers] == [replies["first"], replies["second"]]
    assert not clients._held


@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_error_of_the_server_is_raised_as_it_is_and_not_retried_by_the_sdk(
    kind: type[AnyProvider], status: int
) -> None:
    expected: Any = openai.APIStatusError if kind is OpenAIProvider else anthropic.APIStatusError
    with LLMServer([Reply(status=status, text="try later")]) as server, server.in_environment():
        with pytest.raises(expected, match="try later") as caught:
            ask(kind(max_retries=5))

        assert [call.note for call in server.turned_down()] == ["try later"]
        assert server.journal() == []
    assert caught.value.status_code == status


@pytest.mark.parametrize(
    ("reply", "reason", "words"),
    [
        (Reply(text="Once upon", stop="length", output_tokens=7), "truncated", "cut off after 7 tokens"),
        (Reply(text="I cannot help with that.", stop="refusal"), "refused", "I cannot help with that"),
        (Reply(text=""), "empty", "empty answer"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_unusable_answer_is_an_error_that_carries_what_was_paid(
    kind: type[AnyProvider], reply: Reply, reason: str, words: str
) -> None:
    with LLMServer([reply]) as server, server.in_environment():
        with pytest.raises(AnswerError, match=words) as caught:
            ask(kind())
        (call,) = server.journal()

    error = caught.value
    assert (error.reason, error.model) == (reason, MODELS[kind])
    assert (error.input_tokens, error.output_tokens) == (call.input_tokens, call.output_tokens)


def test_an_answer_that_a_filter_removed_is_an_error() -> None:
    with pytest.raises(AnswerError, match="content filter") as caught:
        ask_scripted(OpenAIProvider, Reply(text="", stop="filter"))

    assert caught.value.reason == "filtered"


def test_a_missing_sdk_is_named_with_the_command_that_installs_it(
    kind: type[AnyProvider], monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = kind()
    monkeypatch.setitem(sys.modules, provider.name, None)

    with pytest.raises(ConfigurationError) as caught:
        provider.check()

    assert f'pip install "n00dles-testing[{provider.name}]"' in str(caught.value)


@pytest.mark.usefixtures("no_keys")
@pytest.mark.parametrize("empty", [False, True], ids=["unset", "empty"])
def test_a_missing_key_is_named_before_anything_is_sent(
    kind: type[AnyProvider], empty: bool, monkeypatch: pytest.MonkeyPatch, running_server: LLMServer
) -> None:
    running_server.reset()
    provider = kind(base_url=running_server.environment[f"{kind.name.upper()}_BASE_URL"])
    if empty:
        monkeypatch.setenv(f"{provider.name.upper()}_API_KEY", "")

    with pytest.raises(ConfigurationError, match=f"{provider.name.upper()}_API_KEY"):
        provider.check()
    with pytest.raises(ConfigurationError, match=f"{provider.name.upper()}_API_KEY"):
        ask(provider)

    assert running_server.journal() == running_server.turned_down() == []


@pytest.mark.usefixtures("no_keys")
def test_a_key_may_be_given_to_the_provider_instead(kind: type[AnyProvider], running_server: LLMServer) -> None:
    running_server.reset()
    base_url = running_server.environment[f"{kind.name.upper()}_BASE_URL"]
    provider = kind(api_key="sk-given", base_url=base_url)

    provider.check()
    answer = ask(provider)

    assert [call.reply for call in running_server.journal()] == [answer.content]


def test_an_sdk_that_signs_in_without_a_key_is_let_through(no_keys: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin")

    AnthropicProvider().check()
    OpenAIProvider().check()


def test_a_call_without_a_model_and_an_http_client_are_refused(kind: type[AnyProvider]) -> None:
    with pytest.raises(ConfigurationError, match="without a model"):
        ask(kind(), model="")

    with pytest.raises(ConfigurationError, match="takes no http_client"):
        kind(http_client=object())


def test_a_prefixed_model_name_is_sent_without_its_prefix(kind: type[AnyProvider], server: LLMServer) -> None:
    ask(kind(), model=f"{kind.name}/my-model")

    assert [call.model for call in server.journal()] == ["my-model"]


def test_other_options_reach_the_sdk(kind: type[AnyProvider], server: LLMServer) -> None:
    ask(kind(), extra_headers={"Idempotency-Key": "run-1/writer"}, temperature=0.5, extra_body={"stop_here": ["END"]})

    (call,) = server.journal()
    assert (call.idempotency_key, call.body["stop_here"], call.body["temperature"]) == ("run-1/writer", ["END"], 0.5)


def test_preload_imports_the_sdk_and_needs_no_key(kind: type[AnyProvider], no_keys: None) -> None:
    code = (
        f"import sys; from n00dles.providers import {kind.__name__}\n"
        f"assert {kind.name!r} not in sys.modules, 'imported too early'\n"
        f"{kind.__name__}().preload(); assert {kind.name!r} in sys.modules"
    )

    done = subprocess.run([sys.executable, "-W", "error", "-c", code], check=False, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")


def test_a_server_that_speaks_something_else_is_a_malformed_answer(running_server: LLMServer) -> None:
    """An HTML page with status 200, as a wrong base URL gives it, is no completion."""
    page: Any = "<html>welcome</html>"

    from n00dles.providers.anthropic import _response as read_message
    from n00dles.providers.openai import _response as read_completion

    for read, variable in ((read_completion, "OPENAI_BASE_URL"), (read_message, "ANTHROPIC_BASE_URL")):
        with pytest.raises(AnswerError, match=variable) as caught:
            read(page, "some-model", 1.0)
        assert caught.value.reason == "malformed"
