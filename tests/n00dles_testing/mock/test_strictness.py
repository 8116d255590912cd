"""What fails a test that uses `mock_llm`, in a pytest of its own, and what that says."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

PIPELINE = """
import asyncio, httpx2, openai, pytest
from pydantic import BaseModel
from n00dles import RetryPolicy, agent, pipeline, run
from n00dles_testing import RateLimited

class Article(BaseModel):
    title: str

@agent(model="gpt-4o-mini", retry=RetryPolicy(max_attempts=2, base_delay=0))
def researcher(topic: str) -> str:
    "Research."

@agent(model="claude-sonnet-4-6", retry=RetryPolicy(max_attempts=2, base_delay=0))
def writer(research: str) -> Article:
    "Write."

content = pipeline(researcher >> writer, name="content")
"""


@pytest.fixture
def outcome(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.RunResult:
    """Every test of this module is about one run of these tests."""
    monkeypatch.setenv("COLUMNS", "400")
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(
        PIPELINE
        + """

def test_passes(mock_llm):
    mock_llm.reply("researcher", "facts")
    mock_llm.reply("writer", Article(title="T"))
    assert run(content, topic="x").output.title == "T"

def test_unscripted(mock_llm):
    mock_llm.reply("researcher", "facts about " + "tools, " * 50)
    mock_llm.reply("editor", "left over")
    run(content, topic="x")

def test_swallowed(mock_llm):
    mock_llm.reply("researcher", "facts")
    try:
        run(content, topic="x")
    except Exception:
        pass

def test_used_up(mock_llm):
    mock_llm.reply("researcher", "facts")
    mock_llm.reply("writer", Article(title="T"))
    run(content, topic="x")
    with pytest.raises(Exception, match="mock_llm has no reply"):
        run(content, topic="y")

def test_unused(mock_llm):
    mock_llm.reply("researcher", "facts")
    mock_llm.reply("writer", Article(title="T"))
    mock_llm.reply("critic", "too long", times=2)
    mock_llm.fail("critic", RateLimited(retry_after=2))
    run(content, topic="x")

def test_nothing_called(mock_llm):
    mock_llm.reply("researcher", "facts")

def test_outside_a_node(mock_llm):
    openai.OpenAI().responses.create(model="gpt-5", input="Hello")

def test_no_model(mock_llm):
    httpx2.get("https://api.example.com/weather")

def test_over_aiohttp(mock_llm):
    aiohttp = pytest.importorskip("aiohttp")

    async def ask():
        async with aiohttp.ClientSession() as session:
            await session.post("https://api.openai.com/v1/chat/completions", json={})

    asyncio.run(ask())

def test_says_nothing(mock_llm):
    mock_llm.reply("facts")

def test_skips_itself(mock_llm):
    mock_llm.reply("writer", "x")
    pytest.skip("not today")

@pytest.fixture
def calls_late(mock_llm):
    yield
    httpx2.post("https://a.example/v1/messages", headers={"x-api-key": "k"},
                json={"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "late"}]})

def test_late(calls_late):
    pass

def test_is_not_seen_by_the_next_test(mock_llm):
    assert (mock_llm.calls, mock_llm.unused) == ([], [])
"""
    )
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:randomly", "-rA")


def test_each_test_ends_as_its_script_says(outcome: pytest.RunResult) -> None:
    outcome.assert_outcomes(passed=3, failed=9, skipped=1, errors=1)
    outcome.stdout.fnmatch_lines_random(["PASSED *::test_passes", "ERROR *::test_late - *after the test had ended*"])
    text = outcome.stdout.str()

    assert (
        "mock_llm has no reply for node 'writer' (claude-sonnet-4-6), which was asked: 'facts about tools, tools, "
    ) in text
    assert "  left, and for other calls: reply('editor', 'left over')" in text
    assert '  to add: mock_llm.reply("writer", Article(…))' in text
    assert "FAILED test_each_test_ends_as_its_script_says.py::test_swallowed - Failed: mock_llm has no reply" in text
    assert "  left: nothing, all of it is used up" in text
    assert "  left: nothing, the script is empty" in text
    assert "  used up: what the script had for 'researcher', which has been called 1 times before" in text
    assert "mock_llm: nobody asked for 2 of its replies:" in text
    assert "  reply('critic', 'too long', times=2)\n" in text
    assert "  fail('critic', RateLimited(retry_after=2" in text
    assert "  called were: researcher, writer" in text
    assert "  called were: nothing, over httpx or httpx2 and in this process. Clients over aiohttp" in text
    assert "mock_llm has no reply for a call of 'gpt-5' that no node makes, which was asked: 'Hello'" in text
    assert '  to add: mock_llm.reply(None, "…", model="gpt-5")' in text
    assert "mock_llm was asked for GET https://api.example.com/weather, which it cannot answer" in text
    assert "mock_llm.reply('facts') says nothing; write mock_llm.reply(node, what)" in text
    assert "mock_llm answers clients of httpx and httpx2. This call came over aiohttp (" in text
