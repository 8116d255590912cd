"""What `mock_llm` refused fails the test, wherever the program has left the error, in a pytest of its own."""

from __future__ import annotations

import os

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import asyncio, os, threading
from concurrent.futures import ThreadPoolExecutor
import httpx, pytest
from n00dles import agent, run

URL = "https://telemetry.example/x"
threads = ThreadPoolExecutor()

@agent
def tells(text: str) -> str:
    threads.submit(httpx.post, URL, json={})
    threads.submit(len, "").result()
    return text

def ask():
    httpx.post("https://a.example/v1/messages", headers={"x-api-key": "k"},
               json={"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]})

def in_a_fork(body):
    pid = os.fork()
    if not pid:
        try:
            body()
        except BaseException:
            pass
        finally:
            os._exit(0)
    os.waitpid(pid, 0)

def test_submitted(mock_llm):
    assert run(tells, text="a").output == "a"
    threads.shutdown()

def test_base_exception(mock_llm):
    try:
        httpx.get(URL)
    except BaseException:
        pass

def test_gathered(mock_llm):
    async def ask():
        async with httpx.AsyncClient() as client:
            await asyncio.gather(client.get(URL), return_exceptions=True)

    asyncio.run(ask())

@pytest.mark.filterwarnings("ignore")
def test_thread(mock_llm):
    thread = threading.Thread(target=httpx.get, args=(URL,))
    thread.start()
    thread.join()

def test_hangs_without_a_time_out(mock_llm):
    from n00dles_testing import Hangs
    mock_llm.fail(None, Hangs())
    try:
        httpx.post("https://a.example/v1/messages", headers={"x-api-key": "k"}, timeout=None,
                   json={"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]})
    except BaseException:
        pass

def test_raised(mock_llm):
    httpx.get(URL)

def test_model_in_a_fork(mock_llm):
    in_a_fork(ask)

def test_refused_in_a_fork(mock_llm):
    in_a_fork(lambda: httpx.get(URL))

def test_next(mock_llm):
    assert mock_llm.calls == []
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_each_fails_by_name(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(TESTS)

    outcome = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:randomly", "-rA")

    outcome.assert_outcomes(passed=1, failed=8)
    text = outcome.stdout.str()
    refused = "mock_llm was asked for GET https://telemetry.example/x, which it cannot answer"
    for name in ("base_exception", "gathered", "thread", "raised", "refused_in_a_fork"):
        outcome.stdout.re_match_lines_random([rf"FAILED .*::test_{name} - .*{refused}"])
    outcome.stdout.re_match_lines_random([r"FAILED .*::test_submitted - .*mock_llm was asked for POST https://tele"])
    outcome.stdout.re_match_lines_random([r"FAILED .*::test_hangs_without_a_time_out - .*no time-out for reading"])
    outcome.stdout.re_match_lines_random(
        [r"FAILED .*::test_model_in_a_fork - .*mock_llm has no reply for a call of 'm'"]
    )
    assert text.count("in the child process ") >= 2
