"""`--n00dles-live` and `--n00dles-record`, with a fake server in the part of the real API, and how the file replays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from n00dles_testing.llm import LLMServer, Reply, ToolCall
from n00dles_testing.llm.heard import heard
from n00dles_testing.llm.known_shapes import SHAPES
from n00dles_testing.llm.script_file import load_script, plain_entry, write_script
from n00dles_testing.llm.secrets_removed import secrets_of, without_secrets
from n00dles_testing.llm.shapes import Completion, Shape

pytest_plugins = ["pytester"]

TESTS = """
import asyncio, anthropic, openai, pytest
from n00dles import agent, pipeline, run

@agent(model="gpt-4o-mini")
def researcher(topic: str) -> str:
    "Research."

alone = pipeline(researcher, name="alone")
KEY = "sk-live-0123456789"
ASKED = [{"role": "user", "content": f"my key is {KEY}"}]

def check(mock_llm):
    assert run(alone, topic="tools").output == f"facts of {ORG}"
    assert [call.node for call in mock_llm.calls] == ["researcher"]
    with anthropic.Anthropic().messages.stream(model="claude-x", max_tokens=9, messages=ASKED) as stream:
        assert stream.get_final_text() == "streamed words"

    async def ask():
        async with openai.AsyncOpenAI(max_retries=0) as client:
            return await client.responses.create(model="gpt-5", input="hi")

    with pytest.raises(openai.RateLimitError, match="slow down"):
        asyncio.run(ask())

@pytest.mark.n00dles_live
def test_real(mock_llm):
    global ORG
    ORG = "org-0123456789"
    mock_llm.reply("researcher", "not used")
    check(mock_llm)
    assert [call.paid for call in mock_llm.calls] == [True, True, False]

def test_mocked(mock_llm):
    mock_llm.reply("researcher", "mocked")
    assert run(alone, topic="tools").output == "mocked"
"""

REPLAY = """
def test_replays(mock_llm):
    global ORG
    ORG = "[removed]"
    mock_llm.replay("recorded.json")
    check(mock_llm)
"""


@pytest.fixture(scope="module")
def running() -> Iterator[LLMServer]:
    with LLMServer() as server:
        yield server


@pytest.fixture
def real_api(running: LLMServer, monkeypatch: pytest.MonkeyPatch) -> LLMServer:
    """A server that the SDKs' own variables lead to; the plugin knows nothing of it."""
    running.reset("real")
    replies = [
        Reply(model="gpt-4o", text="facts of org-0123456789"),
        Reply(model="claude", text="streamed words"),
        Reply(model="gpt-5", status=429, text="slow down"),
    ]
    running.script("real", replies, automatic=False)
    for name, value in running.environment_of("real").items():
        if name != "N00DLES_LLM_CONTROL":
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-live-0123456789")
    return running


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:randomly", "-rs", *arguments)


def test_live_tests_are_skipped_and_say_why(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS)

    result = run(pytester)

    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED * calls the real API, which costs money: run with --n00dles-live"])
    result.stdout.fnmatch_lines(["n00dles: 1 of the skipped tests would call the real API (--n00dles-live)"])


def test_what_live_tests_are_answered_can_be_replayed_without_its_secrets(
    pytester: pytest.Pytester, real_api: LLMServer
) -> None:
    pytester.makepyfile(TESTS + REPLAY)

    live = run(pytester, "--n00dles-live", "--n00dles-record=recorded.json", "-k", "not replays")
    asked = len(real_api.calls("real"))
    replayed = run(pytester, "-k", "replays")

    live.assert_outcomes(passed=2)
    live.stdout.fnmatch_lines(["n00dles: 3 replies of the real API were written to *recorded.json*"])
    replayed.assert_outcomes(passed=1)
    assert (asked, len(real_api.calls("real"))) == (3, 3)
    text = (pytester.path / "recorded.json").read_text()
    assert "0123456789" not in text
    first, second, third = json.loads(text)
    assert first["node"] == "researcher"
    assert first["text"] == "facts of [removed]"
    assert second["prompt"] == r"^my\ key\ is\ .*$"
    assert (third["status"], third["text"]) == (429, "slow down")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--n00dles-record=r.json"], "add --n00dles-live"),
        (["--n00dles-live", "--n00dles-record=r.json", "-n1"], "run it without -n"),
    ],
)
def test_recording_says_what_it_needs(pytester: pytest.Pytester, options: list[str], says: str) -> None:
    pytester.makepyfile("def test_nothing(): ...")

    result = run(pytester, *options)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert says in result.stderr.str()


COMPLETIONS = [
    Completion("They help a lot.", "end", 12, 4),
    Completion("I won't.", "refusal", 12, 4),
    Completion("They", "length", 12, 4),
    Completion("Look: ", "end", 12, 4, (ToolCall("search", {"q": "é"}), ToolCall("search", {}))),
]
TOOLS = {
    "openai": [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}],
    "openai-responses": [{"type": "function", "name": "search", "parameters": {"type": "object"}}],
    "anthropic": [{"name": "search", "input_schema": {"type": "object"}}],
}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
@pytest.mark.parametrize("streamed", [False, True])
def test_what_is_heard_is_what_was_said(shape: Shape, streamed: bool) -> None:
    body = {
        "model": "m",
        "max_tokens": 9,
        shape.conversation: [{"role": "user", "content": "hi"}],
        "tools": TOOLS[shape.name],
        "stream": streamed,
        "stream_options": {"include_usage": True},
    }
    request = shape.read(json.dumps(body).encode(), {"authorization": "Bearer k"})

    for said in COMPLETIONS:
        answer = b"".join(shape.answer(request, said, "1").pieces).decode()
        reply = Reply.from_dict(heard(shape.name, 200, answer, streamed=streamed))

        assert (reply.text, reply.stop, tuple(reply.tool_calls)) == (said.text, said.stop, said.tool_calls)
        assert (reply.input_tokens, reply.output_tokens) == (12, 4)
        with pytest.raises(ValueError, match=r"stream broke off|Unterminated|Expecting|delimiter"):
            heard(shape.name, 200, answer[: len(answer) // 2], streamed=streamed)


def test_secrets_are_those_of_headers_of_the_environment_and_what_looks_like_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ACME_API_KEY", "acme-12345")
    headers = {"authorization": "Bearer tok-12345", "cookie": "session=abcdefgh; a=b", "x-request-id": "r-12345678"}
    secret = ["acme-12345", "tok-12345", "abcdefgh", "sk-proj-abc***xyz", "org-AbCdEf12", "proj_12345678"]

    cleaned = without_secrets(
        {"secret": [f"in {text}" for text in secret], "kept": "r-12345678", "tokens": 3}, secrets_of(headers)
    )

    assert cleaned["secret"] == ["in [removed]"] * len(secret)
    assert cleaned["kept"] == "r-12345678"
    assert cleaned["tokens"] == 3


def test_a_script_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    replies = [
        Reply(node="a", text="one", times=None),
        Reply(node="said nothing"),
        Reply(data={"é": 1}, tool_calls=[ToolCall("t", {})]),
    ]

    write_script(tmp_path / "script.json", [plain_entry(reply) for reply in replies])

    assert load_script(tmp_path / "script.json") == replies
