"""`mock_llm` and `llm_server` in one test, and what the guard says of a client that does not know of the server."""

from __future__ import annotations

import httpx
import pytest

from n00dles_testing.llm import LLMServer
from n00dles_testing.llm.mock import MockLLM
from n00dles_testing.llm.scripted_server import ScriptedServer

pytest_plugins = ["pytester"]

TESTS = """
import openai
from n00dles import agent, run

early = openai.OpenAI(api_key="k", max_retries=0)
ASKED = {"model": "m", "messages": [{"role": "user", "content": "x"}]}

@agent(model="gpt-4o-mini")
def researcher(topic: str) -> str:
    "Research."

def test_mock_first(mock_llm, llm_server):
    llm_server.reply("researcher", "the server's")
    assert run(researcher, topic="x").output == "the server's"
    assert mock_llm.calls == []

def test_server_first(llm_server, mock_llm):
    llm_server.reply("researcher", "the server's")
    mock_llm.reply(None, "the mock's")
    assert run(researcher, topic="x").output == "the server's"
    assert early.chat.completions.create(**ASKED).choices[0].message.content == "the mock's"

def test_early_client(llm_server):
    early.chat.completions.create(**ASKED)

def test_early_client_swallowed(llm_server):
    try:
        early.chat.completions.create(**ASKED)
    except BaseException:
        pass

def test_no_server(no_network):
    early.chat.completions.create(**ASKED)
"""


def test_each_answers_its_own_calls(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("N00DLES_LLM_CONTROL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "400")
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(TESTS)

    outcome = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:randomly", "-rN")

    outcome.assert_outcomes(passed=2, failed=3)
    hint = "A fake LLM server answers in this test: if this was a call of a model, its client was made before"
    assert outcome.stdout.str().count(hint) == 2


def test_a_mock_may_be_told_of_a_server_without_pytest() -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    with LLMServer() as server, ScriptedServer(server, "mine").started() as scripted, MockLLM().checked() as mock_llm:
        mock_llm.leave_to(server.url)
        scripted.reply(None, "the server's")
        url = scripted.environment["OPENAI_BASE_URL"] + "/chat/completions"
        answer = httpx.post(url, json=asked, headers={"authorization": "Bearer k"}).json()

    assert answer["choices"][0]["message"]["content"] == "the server's"
