"""A mock of a class or a module, and within it one of a test: the inner one answers."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import httpx2
import pytest
import respx

from n00dles_testing import MockLLM
from n00dles_testing.llm import LLMServer

BODY = {"model": "m", "input": "hello"}
KEY = {"authorization": "Bearer k"}


def by_httpx(url: str) -> str:
    return str(httpx.post(f"{url}/v1/responses", json=BODY, headers=KEY).json()["output"][0]["content"][0]["text"])


def by_httpx2(url: str) -> str:
    return str(httpx2.post(f"{url}/v1/responses", json=BODY, headers=KEY).json()["output"][0]["content"][0]["text"])


@pytest.mark.parametrize("ask", [by_httpx, by_httpx2])
def test_the_inner_mock_answers_and_then_the_outer_one_again(ask: Callable[[str], str]) -> None:
    with MockLLM().checked() as outer:
        outer.reply(None, "outer", times=None)
        before = ask("https://model.invalid")
        with MockLLM().checked() as inner:
            inner.reply(None, "inner")
            within = ask("https://model.invalid")
        after = ask("https://model.invalid")

    assert (before, within, after) == ("outer", "inner", "outer")
    assert (len(outer.calls), len(inner.calls)) == (2, 1)


def test_other_requests_still_go_to_what_mocks_them_beside() -> None:
    with MockLLM().checked(), MockLLM().checked() as inner, respx.mock(assert_all_called=True) as others:
        others.get("https://weather.invalid/today").respond(text="sunny")
        inner.reply(None, "inner")

        assert httpx.get("https://weather.invalid/today").text == "sunny"
        assert by_httpx("https://model.invalid") == "inner"


def test_a_mock_within_the_environment_of_a_server_answers_all_calls() -> None:
    with LLMServer() as server, server.in_environment(), MockLLM().checked() as inner:
        inner.reply(None, "the mock's")

        assert by_httpx(server.url) == "the mock's"


def test_a_server_whose_environment_is_set_within_a_mock_answers_its_own_calls() -> None:
    with MockLLM().checked() as outer, LLMServer(["the server's"]) as server:
        outer.reply(None, "the mock's")
        with server.in_environment():
            answers = by_httpx(server.url), by_httpx("https://model.invalid")

    assert answers == ("the server's", "the mock's")
