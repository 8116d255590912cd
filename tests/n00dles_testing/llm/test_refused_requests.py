"""Requests that no script is asked for: they are in the journal, and say what was wrong with them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest

from n00dles_testing import MockLLM
from n00dles_testing.llm import LLMServer
from n00dles_testing.llm.mock import NotMocked
from n00dles_testing.llm.scripted_server import ScriptedServer
from n00dles_testing.llm.scripting import Scripted

KEY = {"authorization": "Bearer sk-x"}
HELLO = [{"role": "user", "content": "hello"}]


@pytest.fixture(params=["mock_llm", "llm_server"])
def script(request: pytest.FixtureRequest, running_server: LLMServer) -> Iterator[Scripted]:
    """Both, one after the other."""
    if request.param == "mock_llm":
        with MockLLM().started() as mock_llm:
            yield mock_llm
    else:
        with ScriptedServer(running_server, "refused").started() as server:
            yield server


def sent(script: Scripted, path: str, body: bytes, headers: dict[str, str]) -> httpx2.Response:
    base = script.environment["ANTHROPIC_BASE_URL"] if isinstance(script, ScriptedServer) else "https://model.invalid"
    return httpx2.post(f"{base}/v1/{path}", content=body, headers=headers)


@pytest.mark.parametrize(
    ("path", "body", "headers", "told"),
    [
        ("chat/completions", b"{", KEY, (400, "the body is not JSON", "")),
        ("responses", b'{"model": "gpt-x"}', KEY, (400, "the body has no 'input'", "gpt-x")),
        (
            "messages",
            json.dumps({"model": "claude-x", "messages": HELLO}).encode(),
            KEY,
            (400, "max_tokens", "claude-x"),
        ),
        ("messages", b"\xff", KEY, (400, "the body is not JSON", "")),
        (
            "chat/completions",
            json.dumps({"model": 7, "messages": HELLO}).encode(),
            {},
            (401, "no API key was sent", ""),
        ),
    ],
)
def test_a_request_that_a_provider_would_refuse_is_in_the_journal_and_not_paid(
    script: Scripted, path: str, body: bytes, headers: dict[str, str], told: tuple[int, str, str]
) -> None:
    status, note, model = told
    script.reply(None, "never asked for")
    answer = sent(script, path, body, {**headers, "N00dles-Node": "writer"})

    (call,) = script.calls
    assert answer.status_code == status
    assert note in answer.json()["error"]["message"]
    assert note in call.why_turned_down
    assert (call.paid, call.sent, call.unexpected, call.model) == (False, False, False, model)
    assert (call.input_tokens, call.output_tokens, call.messages, call.prompt) == (0, 0, [], "")
    assert call.body_sha256 == hashlib.sha256(body).hexdigest()
    assert call.node == ("writer" if isinstance(script, ScriptedServer) else "")
    (problem,) = script.problems()
    assert "nobody asked for 1 of its replies" in problem
    assert f"(refused: {call.note})" in problem


def test_embeddings_are_refused_with_what_to_do(script: Scripted) -> None:
    client = openai.OpenAI(max_retries=0)

    with pytest.raises((openai.NotFoundError, NotMocked), match=r"Embeddings are not mocked: .*monkeypatch\.setattr"):
        client.embeddings.create(model="text-embedding-3-small", input="x")

    (problem,) = script.problems()
    assert "Embeddings are not mocked" in problem


def test_the_reason_for_no_reply_is_readable_in_the_error_of_every_sdk(script: Scripted) -> None:
    import anthropic

    calls: list[Any] = [
        lambda: anthropic.Anthropic().messages.create(model="claude-x", max_tokens=5, messages=HELLO),  # type: ignore[arg-type]
        lambda: openai.OpenAI().chat.completions.create(model="gpt-x", messages=HELLO),  # type: ignore[arg-type]
        lambda: openai.OpenAI().responses.create(model="gpt-x", input="hello"),
    ]
    for call in calls:
        with pytest.raises((anthropic.BadRequestError, openai.BadRequestError)) as raised:
            call()

        (problem,) = script.unscripted()
        assert problem in str(raised.value)  # so the plugin need not add it to the failure once more
        assert "\n  left: nothing, the script is empty\n  to add: " in problem
