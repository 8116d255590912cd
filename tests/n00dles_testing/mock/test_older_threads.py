"""A thread that outlives its test asks in the next one: the message says where, and that it is older."""

from __future__ import annotations

import threading

import httpx

from n00dles_testing.llm.mock import MockLLM


def ask() -> None:
    body = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]}
    httpx.post("https://a.example/v1/messages", headers={"x-api-key": "k"}, json=body)


def test_a_call_of_an_older_thread_is_called_that() -> None:
    go = threading.Event()

    def late() -> None:
        go.wait()
        ask()

    thread = threading.Thread(target=late, name="left-over")
    thread.start()
    with MockLLM().started() as mock_llm:
        go.set()
        thread.join()
        (problem,) = mock_llm.problems()

    assert "mock_llm has no reply for a call of 'm' that no node makes" in problem
    assert "test_older_threads.py:" in problem
    assert "by the thread 'left-over', which was started before this test" in problem


def test_a_call_of_the_test_itself_is_not() -> None:
    with MockLLM().started() as mock_llm:
        ask()
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        problems = mock_llm.problems()

    assert "  asked at " in problems[0]
    assert "in ask" in problems[0]
    assert not any("started before" in problem for problem in problems)
