"""Plain clients of httpx and httpx2: what is answered, what passes through, and what is refused by name."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
import respx

from n00dles_testing.llm import faults as f
from n00dles_testing.llm.mock import MockLLM, NotMocked

ROOT = Path(__file__).parents[3]
URL = "https://api.example.com/v1/chat/completions"
BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
KEY = {"authorization": "Bearer k"}
LIBRARIES = pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])


class _Here(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "4")
        self.end_headers()
        self.wfile.write(b"here")

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture(scope="module")
def here() -> Iterator[str]:
    """A server on this machine that has nothing to do with models."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Here) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/health"
        server.shutdown()


def client_of(library: Any, **options: Any) -> Any:
    return library.Client(verify=False, headers=KEY, **options)


async def _async_outcome(library: Any, body: dict[str, Any]) -> Any:
    async with library.AsyncClient(verify=False, headers=KEY) as client:
        try:
            async with client.stream("POST", URL, json=body) as response:
                return [line async for line in response.aiter_lines() if line]
        except library.HTTPError as error:
            return type(error).__name__


@LIBRARIES
def test_sync_and_async_clients_are_answered(mock_llm: MockLLM, library: Any) -> None:
    mock_llm.reply(None, "one two", times=2)

    with client_of(library) as client:
        plain = client.post(URL, json=BODY).json()
    lines = asyncio.run(_async_outcome(library, {**BODY, "stream": True}))

    assert plain["choices"][0]["message"]["content"] == "one two"
    assert lines[-1] == "data: [DONE]"
    assert len(lines) == 5


@LIBRARIES
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (f.Hangs(), "ReadTimeout"),
        (f.ConnectionReset(), "ReadError"),
        (f.LostReply(), "RemoteProtocolError"),
        (f.DropsMidStream(after=1), "RemoteProtocolError"),
    ],
    ids=repr,
)
def test_a_fault_of_the_wire_is_the_same_error_sync_and_async(
    mock_llm: MockLLM, library: Any, fault: f.Fault, error: str
) -> None:
    mock_llm.fail(None, fault, times=2)

    with client_of(library) as client, pytest.raises(getattr(library, error)):
        client.post(URL, json=BODY)
    outcome = asyncio.run(_async_outcome(library, {**BODY, "stream": True}))

    assert outcome == error
    assert [call.sent for call in mock_llm.calls] == [False, False]


@LIBRARIES
def test_a_stream_breaks_off_after_the_events_that_came(mock_llm: MockLLM, library: Any) -> None:
    mock_llm.fail(None, f.DropsMidStream(after=2))
    came: list[str] = []

    def read(response: Any) -> None:
        for line in response.iter_lines():
            came.append(line)

    with client_of(library) as client, client.stream("POST", URL, json={**BODY, "stream": True}) as response:
        assert response.status_code == 200
        with pytest.raises(library.RemoteProtocolError):
            read(response)

    assert len([line for line in came if line]) == 2


def test_a_hang_does_not_wait(mock_llm: MockLLM) -> None:
    mock_llm.fail(None, f.Hangs())
    started = time.perf_counter()

    with client_of(httpx2, timeout=60) as client, pytest.raises(httpx2.ReadTimeout):
        client.post(URL, json=BODY)

    assert time.perf_counter() - started < 5


def test_a_hang_of_a_client_that_would_wait_for_ever_is_told_by_name() -> None:
    with MockLLM().started() as mock_llm, client_of(httpx, timeout=None) as client:
        mock_llm.fail(None, f.Hangs())
        with pytest.raises(NotMocked, match=r"no time-out .* 'm', at .*Give the"):
            client.post(URL, json=BODY)

        assert [problem.partition(":")[0] for problem in mock_llm.problems()] == ["mock_llm"]


def test_a_slow_answer_comes_whole_unless_a_pause_is_longer_than_the_time_out(mock_llm: MockLLM) -> None:
    mock_llm.fail(None, f.SlowDrip(seconds=0.001))
    mock_llm.fail(None, f.SlowDrip(seconds=30))

    with client_of(httpx2) as client:
        assert client.post(URL, json=BODY).json()["object"] == "chat.completion"
        with pytest.raises(httpx2.ReadTimeout):
            client.post(URL, json=BODY)


def test_the_process_can_be_killed_when_the_call_is_paid() -> None:
    code = f"""
import httpx2
from n00dles_testing import KillsClient, MockLLM
with MockLLM().started() as mock_llm:
    mock_llm.fail(None, KillsClient())
    httpx2.post({URL!r}, headers={KEY!r}, json={BODY!r})
"""

    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)

    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert ended.stderr.startswith("mock_llm: the script kills this process now, pid ")


@LIBRARIES
def test_what_stays_on_this_machine_passes_through(mock_llm: MockLLM, library: Any, here: str) -> None:
    with client_of(library) as client:
        assert client.get(here).text == "here"

    assert mock_llm.calls == []


@LIBRARIES
@pytest.mark.parametrize(
    ("method", "url"),
    [
        ("GET", "https://api.example.com/weather"),
        ("GET", URL),
        ("POST", "https://api.openai.com/v1/embeddings"),
        ("POST", "https://api.openai.com/v1/responses/resp_1/cancel"),
    ],
)
def test_what_leaves_the_machine_is_refused_by_name(library: Any, method: str, url: str) -> None:
    with MockLLM().started() as mock_llm, client_of(library) as client:
        with pytest.raises(NotMocked) as refused:
            client.request(method, url)

        assert mock_llm.problems() == [str(refused.value)]

    assert f"{method} {url}, which it cannot answer, at tests" in str(refused.value)
    assert "test_plain_clients.py" in str(refused.value)


@pytest.mark.n00dles_network("192.0.2.1")
def test_a_host_that_the_test_may_use_is_not_refused(mock_llm: MockLLM) -> None:
    with client_of(httpx2, timeout=0.01) as client, pytest.raises(httpx2.TransportError):
        client.get("http://192.0.2.1/weather")


@LIBRARIES
def test_a_request_that_the_provider_would_turn_down_is_turned_down(mock_llm: MockLLM, library: Any) -> None:
    with library.Client(verify=False) as client:
        without_key = client.post(URL, json=BODY)
        without_model = client.post(URL, headers=KEY, json={"messages": []})

    assert (without_key.status_code, without_model.status_code) == (401, 400)
    assert [(call.paid, call.note) for call in mock_llm.calls] == [
        (False, "no API key was sent"),
        (False, "the body has no 'messages'"),
    ]


@pytest.mark.parametrize("first", ["mock_llm", "respx_mock"])
def test_respx_mocks_other_requests_beside_it(first: str, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(first)
    mock_llm: MockLLM = request.getfixturevalue("mock_llm")
    respx_mock: respx.MockRouter = request.getfixturevalue("respx_mock")
    respx_mock.get("https://api.example.com/weather").respond(text="sunny")
    mock_llm.reply(None, "hello")

    with client_of(httpx) as client:
        weather = client.get("https://api.example.com/weather").text
        answer = client.post(URL, json=BODY).json()

    assert weather == "sunny"
    assert answer["choices"][0]["message"]["content"] == "hello"


def test_it_ends_with_the_block(here: str) -> None:
    with MockLLM().checked() as first:
        first.reply(None, "one")
        with client_of(httpx2) as client:
            client.post(URL, json=BODY)
    with MockLLM().started() as second, client_of(httpx2) as client:
        assert client.post(URL, json=BODY).status_code == 400

    assert [call.unexpected for call in first.calls] == [False]
    assert [call.unexpected for call in second.calls] == [True]
    with client_of(httpx2) as client:
        assert client.post(here.replace("health", "v1/chat/completions"), json=BODY).status_code == 501
