"""The server as its users see it: real SDKs, exact records, apart from each other, gone when it should be."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import json
import os
import select
import socket
import subprocess
import sys
import threading
from typing import Any
from urllib.parse import urlsplit

import anthropic
import openai
import pytest

from n00dles_testing.llm import LLMCall, LLMServer, Reply


def openai_call(prompt: str, **options: Any) -> Any:
    with openai.OpenAI(max_retries=0) as client:
        return client.chat.completions.create(
            model="gpt-4o-mini", messages=[{"role": "user", "content": prompt}], **options
        )


def raw_request(url: str, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, Any]:
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=10)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def connected(server: LLMServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", urlsplit(server.url).port or 0))


def test_a_paid_call_is_recorded_as_it_was_sent_and_answered(server: LLMServer) -> None:
    answer = openai_call("why", temperature=0)

    (call,) = server.journal()
    canonical = '{"messages":[{"content":"why","role":"user"}],"model":"gpt-4o-mini","temperature":0}'
    assert (call.n, call.shape, call.model, call.prompt, call.system) == (1, "openai", "gpt-4o-mini", "why", "")
    assert call.request == canonical
    assert call.sha256 == hashlib.sha256(canonical.encode()).hexdigest()
    assert call.reply == answer.choices[0].message.content
    assert (call.input_tokens, call.output_tokens) == (answer.usage.prompt_tokens, answer.usage.completion_tokens)
    assert (call.paid, call.sent, call.killed, call.note) == (True, True, False, "")
    assert call.time == pytest.approx(answer.created or call.time)


def test_calls_are_numbered_in_order_and_forgotten_by_a_reset(server: LLMServer) -> None:
    for prompt in ("one", "two", "three"):
        openai_call(prompt)

    numbered = [(call.n, call.prompt) for call in server.journal()]
    server.reset()

    assert numbered == [(1, "one"), (2, "two"), (3, "three")]
    assert server.journal() == []


def test_calls_at_once_are_each_recorded_once(server: LLMServer) -> None:
    async def many() -> list[Any]:
        async with openai.AsyncOpenAI(max_retries=0) as client:
            asked = [{"role": "user", "content": f"prompt {number}"} for number in range(40)]
            create: Any = client.chat.completions.create
            return await asyncio.gather(*(create(model="gpt-4o-mini", messages=[message]) for message in asked))

    answers = asyncio.run(many())

    calls = server.journal()
    assert sorted(call.prompt for call in calls) == sorted(f"prompt {number}" for number in range(40))
    assert [call.n for call in calls] == list(range(1, 41))
    assert {call.prompt: call.reply for call in calls} == {
        f"prompt {number}": answer.choices[0].message.content for number, answer in enumerate(answers)
    }


def test_channels_do_not_see_each_other(server: LLMServer) -> None:
    names = ["a", "b/c", "ä %"]
    for name in names:
        server.reset(name)
        with server.in_environment(name):
            openai_call(f"for {name}")
            with anthropic.Anthropic(max_retries=0) as client:
                client.messages.create(model="claude-x", max_tokens=10, messages=[{"role": "user", "content": name}])

    seen = {name: [call.prompt for call in server.journal(name)] for name in names}

    assert seen == {name: [f"for {name}", name] for name in names}
    assert server.journal() == []


@pytest.mark.parametrize(
    "schema", [None, {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}]
)
def test_a_streamed_reply_is_the_same_as_a_whole_one(server: LLMServer, schema: dict[str, Any] | None) -> None:
    wanted: Any = {"messages": [{"role": "user", "content": "why"}], "model": "m"}
    shaped: dict[str, Any] = {}
    if schema:
        shaped = {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}}
    with openai.OpenAI(max_retries=0) as client:
        chunks = list(
            client.chat.completions.create(**wanted, **shaped, stream=True, stream_options={"include_usage": True})
        )
    with anthropic.Anthropic(max_retries=0) as other:
        tools: Any = {"tools": [{"name": "t", "input_schema": schema}], "tool_choice": {"type": "tool", "name": "t"}}
        with other.messages.stream(**wanted, max_tokens=100, **(tools if schema else {})) as stream:
            message = stream.get_final_message()

    first, second = server.journal()
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == first.reply
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == first.output_tokens
    (block,) = message.content
    said = block.text if block.type == "text" else json.dumps(block.input)  # type: ignore[union-attr]
    assert said == second.reply
    assert (message.usage.input_tokens, message.usage.output_tokens) == (second.input_tokens, second.output_tokens)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/chat/completions", b"{", 400),
        ("POST", "/v1/chat/completions", b"[]", 400),
        ("POST", "/v1/chat/completions", b'{"model": "m"}', 400),
        ("POST", "/v1/chat/completions", b'{"model": "m", "messages": ["x"]}', 400),
        ("POST", "/v1/chat/completions", b'{"messages": [{"role": "user", "content": "x"}]}', 400),
        ("POST", "/v1/messages", b'{"model": "m", "messages": [{"role": "user", "content": "x"}]}', 400),
        ("POST", "/v1/embeddings", b"{}", 404),
        ("GET", "/v1/chat/completions", b"", 404),
        ("POST", "/control/wrong/report", b"{}", 403),
        ("POST", "/control/wrong/kill", b'{"pid": 2, "request": 1}', 403),
    ],
)
def test_a_request_that_a_provider_would_turn_down_gets_an_error_and_is_not_paid(
    server: LLMServer, method: str, path: str, body: bytes, status: int
) -> None:
    got, answer = raw_request(server.url, method, path, body, {"Authorization": "Bearer sk-x"})

    assert (got, "error" in answer) == (status, True)
    assert server.journal() == []


def test_a_request_without_a_key_is_turned_down(server: LLMServer) -> None:
    body = b'{"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}'

    refused = [raw_request(server.url, "POST", path, body, {})[0] for path in ("/v1/chat/completions", "/v1/messages")]

    assert refused == [401, 401]


def test_a_temperature_is_taken_only_by_the_api_version_that_knows_it(server: LLMServer) -> None:
    with anthropic.Anthropic(max_retries=0) as client:
        wanted: Any = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}
        with pytest.raises(anthropic.BadRequestError, match="temperature"):
            client.messages.create(**wanted, extra_body={"temperature": 0.1})
        client.messages.create(
            **wanted, extra_body={"temperature": 0.1}, extra_headers={"anthropic-version": "2023-06-01"}
        )

    assert [call.body["temperature"] for call in server.journal()] == [0.1]


def test_text_that_is_no_unicode_is_answered_and_recorded(server: LLMServer) -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "lone \ud800 \x00"}]}).encode()

    status, _ = raw_request(server.url, "POST", "/v1/chat/completions", body, {"Authorization": "Bearer sk-x"})

    (call,) = server.journal()
    assert (status, call.prompt) == (200, "lone \ud800 \x00")


def test_clients_that_vanish_at_any_point_leave_the_server_quiet_and_working(capfd: pytest.CaptureFixture[str]) -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * 100_000}]}).encode()
    request = b"POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer x\r\nContent-Length: %d\r\n\r\n" % len(body)
    with LLMServer([Reply(text="y" * 20_000_000, times=None)]) as server:
        for cut in (0, 10, len(request), len(request) + 50_000, len(request) + len(body)):
            connection = connected(server)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # close with a reset
            connection.sendall((request + body)[:cut])
            if cut == len(request) + len(body):
                connection.recv(1)
            connection.close()
        with server.in_environment():
            openai_call("still there?")

        calls = server.journal()

    assert [(call.paid, call.sent) for call in calls] == [(True, False), (True, True)]
    assert "the client was gone" in calls[0].note
    assert capfd.readouterr() == ("", "")


def test_the_journal_waits_for_a_reply_that_is_on_its_way() -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer x\r\nContent-Length: %d\r\n\r\n" % len(body)
    seen: list[LLMCall] = []
    with LLMServer([Reply(text="y" * 20_000_000)]) as server, connected(server) as connection:
        connection.sendall(head + body)
        left = 20_000_000 - len(connection.recv(1))  # it is being sent, and nobody reads on
        reader = threading.Thread(target=lambda: seen.extend(server.journal()))
        reader.start()
        while left > 0:
            left -= len(connection.recv(1_000_000))
        reader.join()

    assert [(call.paid, call.sent) for call in seen] == [(True, True)]


def test_the_environment_is_put_back_as_it_was(server: LLMServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "mine")
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("NO_PROXY", "example.com")

    with server.in_environment("inside"):
        inside = {name: os.environ[name] for name in ("OPENAI_API_KEY", "NO_PROXY", "N00DLES_LLM_CONTROL")}

    assert inside == {
        "OPENAI_API_KEY": "sk-fake",
        "NO_PROXY": "example.com,127.0.0.1",
        "N00DLES_LLM_CONTROL": server.control_url("inside"),
    }
    assert (os.environ["OPENAI_API_KEY"], os.environ.get("ANTHROPIC_API_KEY")) == ("mine", None)


def test_a_proxy_in_the_environment_is_not_asked(server: LLMServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    openai_call("straight")

    assert [call.prompt for call in server.journal()] == ["straight"]


def test_the_server_ends_when_its_parent_is_killed() -> None:
    code = (
        "import os, time\n"
        "from n00dles_testing.llm import LLMServer\n"
        "server = LLMServer(); server.start()\n"
        "if not os.fork():\n"  # a fork of the parent keeps the server's stdin open
        "    time.sleep(30); os._exit(0)\n"
        "print(server.pid, flush=True); time.sleep(30)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    descriptor = os.pidfd_open(pid)

    parent.kill()
    parent.wait()
    parent.stdout.close()

    ended = _ends_within(descriptor, seconds=10)
    os.killpg(parent.pid, 9)  # the fork
    assert ended


def _ends_within(descriptor: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    ended = bool(poll.poll(seconds * 1000))
    os.close(descriptor)
    return ended


def test_a_stopped_server_is_gone_and_says_so() -> None:
    server = LLMServer()
    server.start()
    descriptor = os.pidfd_open(server.pid or 0)
    with pytest.raises(RuntimeError, match="runs already"):
        server.start()

    server.stop()
    server.stop()

    assert _ends_within(descriptor, seconds=0)
    assert server.pid is None
    with pytest.raises(RuntimeError, match="cannot be reached"):
        server.journal()


def test_the_server_process_imports_the_standard_library_only() -> None:
    code = "import sys, n00dles_testing.llm.server; print(sorted({name.split('.')[0] for name in sys.modules}))"

    loaded = subprocess.run([sys.executable, "-S", "-c", code], check=True, capture_output=True, text=True).stdout

    foreign = {name for name in json.loads(loaded.replace("'", '"')) if name not in sys.stdlib_module_names}
    assert foreign <= {"__main__", "n00dles_testing", "__mp_main__"}


def test_a_file_in_the_working_folder_does_not_stand_in_for_a_module(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')\n")
    monkeypatch.chdir(tmp_path)

    with LLMServer() as server:
        calls = server.journal()

    assert calls == []
