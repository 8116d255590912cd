"""`llm_server` in pytest: what fails a test, and what that says; one process, and a channel for each test."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import json, os, threading, urllib.error, urllib.request
import pytest
from n00dles import RetryPolicy, agent, pipeline, run
from n00dles_testing import LostReply, RateLimited

@agent(model="gpt-4o-mini", retry=RetryPolicy(2, base_delay=0))
def researcher(topic: str) -> str:
    "Research."

content = pipeline(researcher, name="content")
urls = []

def post(url=None):
    url = (url or os.environ["OPENAI_BASE_URL"]) + "/chat/completions"
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "late"}]}).encode()
    request = urllib.request.Request(url, body, {"Authorization": "Bearer k", "Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]

def test_passes(llm_server):
    urls.append(os.environ["OPENAI_BASE_URL"])
    llm_server.fail("researcher", LostReply(), then="facts")
    assert run(content, topic="x").output == "facts"
    assert [(call.node, call.paid) for call in llm_server.calls] == [("researcher", True)] * 2

def test_has_a_channel_of_its_own_on_the_same_server(llm_server):
    assert (llm_server.calls, llm_server.unused) == ([], [])
    ours, theirs = os.environ["OPENAI_BASE_URL"], urls[0]
    assert ours != theirs
    assert ours.split("/")[2] == theirs.split("/")[2]

def test_unscripted(llm_server):
    llm_server.reply("editor", "left over")
    run(content, topic="x")

def test_swallowed(llm_server):
    try:
        run(content, topic="x")
    except Exception:
        pass

def test_unused(llm_server):
    llm_server.reply("researcher", "facts", times=3)
    llm_server.fail("critic", RateLimited(retry_after=2))
    run(content, topic="x")

@pytest.fixture
def calls_late(llm_server):
    yield
    with pytest.raises(urllib.error.HTTPError):
        post()

def test_late(calls_late):
    pass

def test_environment_is_as_before():
    assert "N00DLES_LLM_CONTROL" not in os.environ
    with pytest.raises(urllib.error.HTTPError, match="400"):
        post(urls[0])  # of the test that has ended: nothing is made up for it
"""


def test_each_test_ends_as_its_script_says(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("N00DLES_LLM_CONTROL", raising=False)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(TESTS)

    outcome = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:randomly", "-rA")

    text = outcome.stdout.str()
    outcome.assert_outcomes(passed=4, failed=3, errors=1)
    outcome.stdout.fnmatch_lines_random(["PASSED *::test_late", "ERROR *::test_late - *"])
    assert "after the test had ended: llm_server has no reply for a call of 'm' that no node makes" in text
    assert "llm_server has no reply for node 'researcher' (gpt-4o-mini), which was asked: 'x'" in text
    assert '  to add: llm_server.reply("researcher", "…")' in text
    outcome.stdout.fnmatch_lines(["*_ test_swallowed _*", "llm_server has no reply for node 'researcher'*"])
    assert "llm_server: nobody asked for 2 of its replies:" in text
    assert "fail('critic', RateLimited(retry_after=2))" in text
