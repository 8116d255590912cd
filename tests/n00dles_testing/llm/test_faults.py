"""Every fault at the wire: what the official SDKs make of it, and what the executor does then."""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

import anthropic
import httpx2
import openai
import pytest
from pydantic import BaseModel

from n00dles import AgentOutputError, PipelineFailure, RetryPolicy, agent, pipeline, run
from n00dles.errors import AnswerError
from n00dles.providers import OpenAIProvider
from n00dles_testing import (
    ConnectionReset,
    DropsMidStream,
    Hangs,
    KillsClient,
    LostReply,
    MalformedJSON,
    Overloaded,
    RateLimited,
    Refusal,
    ServerError,
    SlowDrip,
    TruncatedJSON,
    WrongSchema,
)
from n00dles_testing.llm import LLMCall, LLMServer
from n00dles_testing.llm.client_process import client_process
from n00dles_testing.llm.faults import Fault
from n00dles_testing.llm.scripted_server import ScriptedServer

IMPATIENT = 0.05
needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="the server finds a client's process in /proc")
MESSAGES: Any = [{"role": "user", "content": "Write about tools."}]
LONG = {"title": "Tools", "text": "word " * 60}


class Article(BaseModel):
    title: str


class Raised(NamedTuple):
    """What each SDK raises. `status` is that of an HTTP error."""

    fault: Fault
    paid: bool
    openai: type[Exception]
    anthropic: type[Exception]
    status: int | None = None


RAISED = [
    Raised(RateLimited(retry_after=2), False, openai.RateLimitError, anthropic.RateLimitError, 429),
    Raised(ServerError(), False, openai.InternalServerError, anthropic.InternalServerError, 500),
    Raised(ServerError(503), False, openai.InternalServerError, anthropic.InternalServerError, 503),
    Raised(Overloaded(), False, openai.InternalServerError, anthropic.InternalServerError, 529),
    Raised(Hangs(), False, openai.APITimeoutError, anthropic.APITimeoutError),
    Raised(ConnectionReset(), False, openai.APIConnectionError, anthropic.APIConnectionError),
    Raised(DropsMidStream(after=2), True, openai.APIConnectionError, anthropic.APIConnectionError),
    Raised(TruncatedJSON(), True, json.JSONDecodeError, json.JSONDecodeError),
    Raised(MalformedJSON(), True, json.JSONDecodeError, json.JSONDecodeError),
    Raised(LostReply(), True, openai.APIConnectionError, anthropic.APIConnectionError),
]


@pytest.mark.parametrize("row", RAISED, ids=lambda row: str(row.fault))
def test_what_the_official_sdks_raise(
    llm: ScriptedServer, openai_client: openai.OpenAI, anthropic_client: anthropic.Anthropic, row: Raised
) -> None:
    llm.fail(None, row.fault, times=3)
    timeout = httpx2.Timeout(30, read=IMPATIENT if isinstance(row.fault, Hangs) else 30)
    impatient = openai_client.with_options(timeout=timeout)

    with pytest.raises(row.openai) as of_chat:
        impatient.chat.completions.create(model="gpt-x", messages=MESSAGES)
    with pytest.raises(row.openai) as of_responses:
        impatient.responses.create(model="gpt-x", input="Write about tools.")
    with pytest.raises(row.anthropic) as of_messages:
        anthropic_client.with_options(timeout=timeout).messages.create(
            model="claude-x", max_tokens=9, messages=MESSAGES
        )

    raised = [each.value for each in (of_chat, of_responses, of_messages)]
    assert [getattr(error, "status_code", None) for error in raised] == [row.status] * 3
    assert [(call.paid, call.sent, call.unexpected) for call in _soon(llm, 3)] == [
        (row.paid, row.status is not None or row.openai is json.JSONDecodeError, False)
    ] * 3
    assert {call.fault for call in llm.calls} == {repr(row.fault)}
    assert all((call.input_tokens > 0) == (call.output_tokens > 0) == row.paid for call in llm.calls)
    if isinstance(row.fault, RateLimited):
        assert [error.response.headers["retry-after"] for error in raised] == ["2"] * 3  # type: ignore[attr-defined]


def test_how_a_stream_breaks_off(
    llm: ScriptedServer, openai_client: openai.OpenAI, anthropic_client: anthropic.Anthropic
) -> None:
    llm.fail(None, DropsMidStream(after=3), times=3)
    chunks: list[Any] = []
    events: list[Any] = []
    blocks: list[Any] = []

    with pytest.raises(openai.APIConnectionError):
        _each(openai_client.chat.completions.create(model="m", messages=MESSAGES, stream=True), chunks)
    with pytest.raises(openai.APIConnectionError):
        _each(openai_client.responses.create(model="m", input="x", stream=True), events)
    with pytest.raises(httpx2.RemoteProtocolError, match="without sending complete message body"):
        _each(anthropic_client.messages.create(model="m", max_tokens=9, messages=MESSAGES, stream=True), blocks)

    assert [len(came) for came in (chunks, events, blocks)] == [3, 3, 3]
    assert events[2].type == "response.output_item.added"
    assert all(call.paid and not call.sent for call in llm.calls)


@pytest.mark.parametrize("fault", [TruncatedJSON(), MalformedJSON()], ids=str)
def test_an_event_of_a_stream_that_is_not_json(llm: ScriptedServer, openai_client: openai.OpenAI, fault: Fault) -> None:
    llm.fail(None, fault)
    chunks: list[Any] = []

    with pytest.raises(json.JSONDecodeError):
        _each(openai_client.chat.completions.create(model="m", messages=MESSAGES, stream=True), chunks)

    assert len(chunks) > 1


def test_errors_have_the_type_that_each_provider_gives_them(
    llm: ScriptedServer, openai_client: openai.OpenAI, anthropic_client: anthropic.Anthropic
) -> None:
    types = {}
    for fault in (RateLimited(), ServerError(), Overloaded("come back later")):
        llm.fail(None, fault, times=2)
        with pytest.raises(openai.APIStatusError) as of_openai:
            openai_client.chat.completions.create(model="m", messages=MESSAGES)
        with pytest.raises(anthropic.APIStatusError, match=fault.message) as of_anthropic:
            anthropic_client.messages.create(model="m", max_tokens=9, messages=MESSAGES)
        types[type(fault)] = (of_openai.value.type, of_anthropic.value.type)

    assert types == {
        RateLimited: ("requests", "rate_limit_error"),
        ServerError: ("server_error", "api_error"),
        Overloaded: ("server_error", "overloaded_error"),
    }


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (Refusal("I would rather not."), "I would rather not."),
        (WrongSchema(), '{"unexpected": true}'),
        (TruncatedJSON(of="answer"), '{"title":'),
        (MalformedJSON(of="answer"), 'Sure, here it is:\n```json\n{"title": "Tools!"}\n```'),
        (SlowDrip(seconds=0), '{"title": "Tools!"}'),
    ],
    ids=str,
)
def test_what_the_official_sdks_return_where_the_fault_is_in_the_answer(
    llm: ScriptedServer, openai_client: openai.OpenAI, anthropic_client: anthropic.Anthropic, fault: Fault, says: str
) -> None:
    for _ in range(3):
        llm.reply(None, {"title": "Tools!"}, fault=fault)

    chat = openai_client.chat.completions.create(model="m", messages=MESSAGES).choices[0]
    response = openai_client.responses.create(model="m", input="x")
    message = anthropic_client.messages.create(model="m", max_tokens=9, messages=MESSAGES)

    refused = isinstance(fault, Refusal)
    assert (chat.message.refusal if refused else chat.message.content) == says
    assert chat.finish_reason == "stop"
    part: Any = response.output[0].content[0]  # type: ignore[union-attr, index]
    assert (part.refusal if refused else part.text) == says
    assert message.content[0].text == says  # type: ignore[union-attr]
    assert message.stop_reason == ("refusal" if refused else "end_turn")
    assert [(call.paid, call.sent, call.reply) for call in llm.calls] == [(True, True, says)] * 3


CAUSES: list[tuple[Fault, type[Exception]]] = [
    *((row.fault, row.openai) for row in RAISED),
    (Refusal("No."), AnswerError),
    (WrongSchema(), AgentOutputError),
    (TruncatedJSON(of="answer"), AgentOutputError),
    (MalformedJSON(of="answer"), AgentOutputError),
]


@pytest.mark.parametrize(("fault", "cause"), CAUSES, ids=lambda value: str(value) if isinstance(value, Fault) else "")
def test_the_executor_tries_again_then_takes_the_fallback_and_fails_without_one(
    llm: ScriptedServer, fault: Fault, cause: type[Exception]
) -> None:
    impatient = OpenAIProvider(timeout=httpx2.Timeout(30, read=IMPATIENT)) if isinstance(fault, Hangs) else None
    twice, once = RetryPolicy(2, base_delay=0), RetryPolicy(1)

    @agent(model="gpt-backup")
    def backup(topic: str) -> Article: ...

    @agent(model="gpt-x", retry=twice, fallback=backup, provider=impatient)
    def writer(topic: str) -> Article: ...

    @agent(model="gpt-x", retry=once, provider=impatient)
    def editor(article: Article) -> Article: ...

    llm.fail("writer", fault, times=2, model="gpt-x")
    llm.reply("writer", Article(title="Tools"), model="gpt-backup")
    llm.fail("editor", fault)

    with pytest.raises(PipelineFailure) as failure:
        run(pipeline(writer >> editor, name="content"), topic="tools", store="memory://")

    assert failure.value.node_name == "editor"
    assert isinstance(failure.value.cause, cause)
    assert sorted((call.node, call.model, call.paid) for call in _soon(llm, 4)) == [
        ("editor", "gpt-x", fault.paid),
        ("writer", "gpt-backup", True),
        ("writer", "gpt-x", fault.paid),
        ("writer", "gpt-x", fault.paid),
    ]


def test_a_reply_that_drips_for_longer_than_a_node_has_is_a_time_out(llm: ScriptedServer) -> None:
    @agent(model="gpt-x")
    def researcher(topic: str) -> str: ...

    @agent(model="gpt-backup")
    def backup(research: str) -> Article: ...

    @agent(model="gpt-x", retry=RetryPolicy(1), fallback=backup, timeout=0.15)
    def writer(research: str) -> Article: ...

    @agent(model="gpt-x", retry=RetryPolicy(1), timeout=0.15)
    def editor(article: Article) -> Article: ...

    llm.reply("researcher", "It also opens the connection, which the next node then need not.")
    llm.fail("writer", SlowDrip(seconds=0.1), model="gpt-x")
    llm.reply("writer", Article(title="Tools"), model="gpt-backup")
    llm.fail("editor", SlowDrip(seconds=0.1))

    with pytest.raises(PipelineFailure, match="not done within its timeout") as failure:
        run(pipeline(researcher >> writer >> editor, name="content"), topic="tools", store="memory://")

    assert isinstance(failure.value.cause, TimeoutError)
    assert [(call.node, call.paid) for call in llm.calls] == [
        ("researcher", True),
        ("writer", True),
        ("writer", True),
        ("editor", True),
    ]


class Forgiving(BaseModel):
    """Takes an answer that has nothing of it, or that has more."""

    title: str = ""
    tags: list[str] = []
    notes: dict[str, str] | None = None
    kind: Literal["short", "long"] | int = "short"
    inner: Article | str | None = None
    anything: Any = None


def test_a_wrong_schema_is_wrong_for_a_model_that_would_take_almost_everything(llm: ScriptedServer) -> None:
    @agent(model="claude-x", retry=RetryPolicy(1))
    def writer(topic: str) -> Forgiving: ...

    llm.fail("writer", WrongSchema())

    with pytest.raises(PipelineFailure) as failure:
        run(pipeline(writer, name="content"), topic="tools", store="memory://")

    assert isinstance(failure.value.cause, AgentOutputError)
    assert json.loads(llm.calls[0].reply).keys() == {"title", "tags", "notes", "kind", "inner"}
    assert len(failure.value.cause.cause.errors(include_url=False)) >= 5  # type: ignore[attr-defined]


@pytest.mark.parametrize("fault", [RateLimited(retry_after=0), LostReply()], ids=str)
def test_a_fault_that_passes_is_overcome_and_a_lost_reply_is_paid_twice(llm: ScriptedServer, fault: Fault) -> None:
    @agent(model="claude-x", retry=RetryPolicy(2, base_delay=0))
    def writer(topic: str) -> Article: ...

    llm.fail("writer", fault, then=Article(title="Tools"))

    result = run(pipeline(writer, name="content"), topic="tools", store="memory://")

    first, second = llm.calls
    assert result.output == Article(title="Tools")
    assert [(call.paid, call.sent) for call in (first, second)] == [(fault.paid, not fault.paid), (True, True)]
    assert first.idempotency_key == second.idempotency_key != ""
    assert result.total_tokens == second.input_tokens + second.output_tokens


def test_a_reply_that_drips_passes_every_time_out_for_reading(
    llm: ScriptedServer, openai_client: openai.OpenAI
) -> None:
    llm.reply(None, LONG, fault=SlowDrip(seconds=0.02))
    patient = openai_client.with_options(timeout=httpx2.Timeout(5.0, read=0.5))
    started = time.perf_counter()

    answer = patient.chat.completions.create(model="m", messages=MESSAGES).choices[0].message.content

    assert json.loads(answer or "") == LONG
    assert time.perf_counter() - started > 0.02 * (len(answer or "") // 64)


@needs_proc
def test_a_process_that_is_killed_by_its_call_has_paid_and_resumes_without_what_it_had(
    llm: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "killed_by_its_call.py").write_text(
        "from n00dles import agent, pipeline, run\n"
        "@agent(model='gpt-x')\n"
        "def researcher(topic: str) -> str: ...\n"
        "@agent(model='gpt-x')\n"
        "def writer(research: str) -> str: ...\n"
        "content = pipeline(researcher >> writer, name='content')\n"
        "def go(): return run(content, run_id='r1', topic='tools', store='sqlite:///runs.db').output\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    llm.reply("researcher", "Three facts.")
    llm.fail("writer", KillsClient(), then="A story.")

    first = subprocess.run(
        [sys.executable, "-c", "import killed_by_its_call; killed_by_its_call.go()"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=False,
    )
    second = importlib.import_module("killed_by_its_call").go()

    assert (first.returncode, second) == (-signal.SIGKILL, "A story.")
    assert [(call.node, call.paid, call.killed, call.sent) for call in llm.calls] == [
        ("researcher", True, False, True),
        ("writer", True, True, False),
        ("writer", True, False, True),
    ]


@needs_proc
def test_the_process_at_the_other_end_is_found_whatever_the_version_of_its_socket() -> None:
    child = "import os, socket, sys; s = socket.socket(socket.AF_INET6 if sys.argv[1] == '6' else socket.AF_INET)\n"
    child += "s.connect(('::ffff:127.0.0.1' if sys.argv[1] == '6' else '127.0.0.1', int(sys.argv[2]))); s.recv(1)"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        for version in "46":
            port = str(listening.getsockname()[1])
            with subprocess.Popen([sys.executable, "-S", "-c", child, version, port]) as client:
                connection, _ = listening.accept()
                with connection:
                    found = client_process(connection)

            assert found == client.pid


@needs_proc
def test_a_process_that_cannot_be_told_is_not_killed_and_fails_the_test(
    running_server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted = ScriptedServer(running_server, "shared")
    place = urlsplit(running_server.url)
    connection = socket.create_connection((place.hostname or "", place.port or 0))
    child = subprocess.Popen(["sleep", "60"], pass_fds=[connection.fileno()])  # holds the client's end, too
    scripted.fail(None, KillsClient())
    body = b'{"model": "m", "messages": [{"role": "user", "content": "x"}]}'

    try:
        head = f"POST /shared/v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer k\r\nContent-Length: {len(body)}"
        connection.sendall(head.encode() + b"\r\n\r\n" + body)
        answered = connection.recv(100)
    finally:
        child.kill()
        child.wait()
        connection.close()

    (call,) = scripted.calls
    assert (answered, call.paid, call.killed, call.unexpected) == (b"", True, False, True)
    assert f"{child.pid}" in call.note
    assert "use arm_kill" in scripted.problems()[0]


def _soon(llm: ScriptedServer, number: int) -> list[LLMCall]:
    """Return the calls: a client that gives up may do so before the server has read what it was sent."""
    deadline = time.monotonic() + 10
    while len(llm.calls) < number and time.monotonic() < deadline:
        time.sleep(0.01)
    return llm.calls


def _each(stream: Any, into: list[Any]) -> None:
    for each in stream:
        into.append(each)
