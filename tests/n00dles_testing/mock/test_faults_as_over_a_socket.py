"""What `mock_llm` does to a client is what a connection does to it: every fault is compared with the server's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import anthropic
import openai
import pytest

from n00dles_testing.llm import LLMServer
from n00dles_testing.llm import faults as f
from n00dles_testing.llm.mock import MockLLM
from n00dles_testing.llm.scripted_server import ScriptedServer
from n00dles_testing.llm.scripting import Scripted

ASKED: list[Any] = [{"role": "user", "content": "Write about tools."}]
FAULTS = [
    f.RateLimited(retry_after=2),
    f.ServerError(),
    f.ServerError(status=503),
    f.Overloaded(),
    f.Hangs(),
    f.ConnectionReset(),
    f.DropsMidStream(after=2),
    f.TruncatedJSON(),
    f.TruncatedJSON(of="answer"),
    f.MalformedJSON(),
    f.Refusal("No."),
    f.WrongSchema(),
    f.SlowDrip(seconds=0.001),
    f.LostReply(),
]
WAYS = ["openai", "openai streamed", "responses", "responses streamed", "anthropic", "anthropic streamed"]


@pytest.fixture(scope="module")
def running() -> Iterator[LLMServer]:
    with LLMServer() as server:
        yield server


@pytest.fixture(scope="module")
def clients() -> Iterator[tuple[openai.OpenAI, anthropic.Anthropic]]:
    with (
        openai.OpenAI(api_key="k", max_retries=0) as one,
        anthropic.Anthropic(api_key="k", max_retries=0) as other,
    ):
        yield one, other


@pytest.fixture
def server(running: LLMServer) -> ScriptedServer:
    return ScriptedServer(running, "faults")


def call(client: Any, way: str) -> Any:
    """Make one call, and return what came of it: an answer, or the error and its cause."""
    streamed = "streamed" in way
    try:
        match way.split(maxsplit=1)[0]:
            case "openai":
                answer = client.chat.completions.create(model="m", messages=ASKED, stream=streamed)
            case "responses":
                answer = client.responses.create(model="m", input="Write about tools.", stream=streamed)
            case _:
                answer = client.messages.create(model="m", max_tokens=9, messages=ASKED, stream=streamed)
        return [_seen(each) for each in answer] if streamed else _seen(answer)
    except Exception as error:
        headers = getattr(getattr(error, "response", None), "headers", {})
        return type(error), type(error.__cause__), getattr(error, "status_code", None), headers.get("retry-after")


def _seen(answer: Any) -> Any:
    """Return an answer without what is different each time: ids and dates."""
    if isinstance(answer, str | int | float | None):
        return answer
    record = answer.model_dump() if hasattr(answer, "model_dump") else answer
    if isinstance(record, list):
        return [_seen(each) for each in record]
    return {name: _seen(value) for name, value in record.items() if not name.endswith("id")}


def outcomes(
    script: Scripted, fault: f.Fault, clients: tuple[openai.OpenAI, anthropic.Anthropic], urls: Mapping[str, str]
) -> dict[str, Any]:
    """Return what comes of a call in each of the ways, all of which meet the fault."""
    script.fail(None, fault, times=len(WAYS))
    # Over a socket a hang is waited for; nothing else may be cut short on a busy machine.
    patience = 0.05 if isinstance(fault, f.Hangs) else 60
    came = {}
    for way in WAYS:
        client: Any = clients[way.startswith("anthropic")].with_options(timeout=patience)
        url = urls.get("ANTHROPIC_BASE_URL" if way.startswith("anthropic") else "OPENAI_BASE_URL")
        came[way] = call(client if url is None else client.with_options(base_url=url), way)
    return came


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
def test_the_sdk_meets_the_same_in_process_and_over_a_socket(
    fault: f.Fault, server: ScriptedServer, clients: tuple[openai.OpenAI, anthropic.Anthropic]
) -> None:
    with MockLLM().checked() as mock_llm:
        mocked = outcomes(mock_llm, fault, clients, {})
    served = outcomes(server, fault, clients, server.environment)

    for way in WAYS:
        assert mocked[way] == served[way], way
    assert [one.paid for one in mock_llm.calls] == [fault.paid] * len(WAYS)
    assert [one.fault for one in server.calls] == [repr(fault)] * len(WAYS)
    assert server.problems() == []
