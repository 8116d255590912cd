"""What is read from the headers of an error, and what the executor makes of it."""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import Any
from unittest.mock import MagicMock, Mock

import httpx
import httpx2
import openai
import pytest

from n00dles import PipelineFailure, RetryPolicy, agent, run
from n00dles.events import Event, NodeFailed, NodeRetried
from n00dles.retry_after import LONGEST, retry_after
from n00dles_testing import NoSleep


def limited(headers: dict[str, str]) -> openai.RateLimitError:
    request = httpx2.Request("POST", "https://model.invalid")
    return openai.RateLimitError("limit", response=httpx2.Response(429, headers=headers, request=request), body=None)


def caused_by(cause: BaseException) -> Exception:
    error = ValueError("no facts")
    error.__cause__ = cause
    return error


class WithHeaders(Exception):
    """As an error of aiohttp, whose headers are its own."""

    def __init__(self, headers: Any) -> None:
        self.headers = headers


class OfLitellm(Exception):
    """As an error that litellm has made of a provider's: it has a response of its own, without headers."""

    response = httpx.Response(429)

    def __init__(self, headers: Any) -> None:
        self.litellm_response_headers = headers


class Awkward(Exception):
    @property
    def response(self) -> object:
        raise RuntimeError("there is none")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "0"}, 0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "3"}, 3),
        ({"retry-after": "3600"}, LONGEST),
        ({"retry-after": "soon"}, 0),
        ({"retry-after": "-5"}, 0),
        ({"retry-after": "inf"}, 0),
        ({"retry-after": "nan"}, 0),
        ({"retry-after": ""}, 0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0),
        ({"retry-after": "Thu, 01 Jan 999999999999 00:00:00 GMT"}, 0),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, LONGEST),
        ({}, 0),
    ],
)
def test_the_headers_of_an_error_say_how_long(headers: dict[str, str], seconds: float) -> None:
    assert retry_after(limited(headers)) == seconds


def test_a_date_is_waited_for() -> None:
    assert 18 < retry_after(limited({"retry-after": formatdate(time.time() + 20, usegmt=True)})) <= 20


def test_it_is_found_where_other_libraries_have_it_and_through_what_wraps_it() -> None:
    request = httpx.Request("GET", "https://search.invalid")
    plain = httpx.HTTPStatusError("429", request=request, response=httpx.Response(429, headers={"Retry-After": "4"}))

    assert retry_after(plain) == 4
    assert retry_after(WithHeaders({"Retry-After": "5"})) == 5
    assert retry_after(OfLitellm({"retry-after": "6"})) == 6
    assert retry_after(caused_by(caused_by(plain))) == 4
    assert retry_after(ExceptionGroup("two", [limited({"retry-after": "2"}), caused_by(plain)])) == 4


def test_errors_that_know_of_no_headers_ask_for_nothing() -> None:
    circle = caused_by(ValueError())
    assert circle.__cause__ is not None
    circle.__cause__.__cause__ = circle
    errors = [circle, Awkward(), WithHeaders(None), WithHeaders(7), WithHeaders(Mock()), WithHeaders(MagicMock())]

    assert [retry_after(error) for error in errors] == [0] * 6


@pytest.mark.parametrize(("asked", "waited"), [("5", [5, 5, 8]), ("3600", [60, 60, 60]), ("soon", [2, 4, 8])])
def test_the_executor_waits_as_long_as_it_was_asked_and_no_shorter_than_it_would_have(
    no_sleep: NoSleep, asked: str, waited: list[float]
) -> None:
    @agent(retry=RetryPolicy(4, base_delay=2, jitter=False))
    async def search(topic: str) -> str:
        raise caused_by(limited({"retry-after": asked}))

    seen: list[Event] = []
    with pytest.raises(PipelineFailure):
        run(search, topic="x", store="memory://", observers=[seen.append])

    assert [event.delay for event in seen if isinstance(event, NodeRetried)] == waited
    assert [(call.seconds, call.node) for call in no_sleep.calls] == [(seconds, "search") for seconds in waited]


def test_jitter_is_added_and_never_taken_away() -> None:
    policy = RetryPolicy(base_delay=0, max_delay=1)

    delays = [policy.delay(1, limited({"retry-after": "20"})) for _ in range(50)]

    assert min(delays) >= 20
    assert max(delays) <= 22
    assert len(set(delays)) > 1


def test_a_fallback_is_another_provider_and_does_not_wait(no_sleep: NoSleep) -> None:
    @agent
    def spare(topic: str) -> str:
        return "the spare's"

    @agent(retry=1, fallback=spare)
    def search(topic: str) -> str:
        raise limited({"retry-after": "30"})

    seen: list[Event] = []
    assert run(search, topic="x", store="memory://", observers=[seen.append]).output == "the spare's"

    assert no_sleep.calls == []
    assert [event.fallback for event in seen if isinstance(event, NodeFailed)] == ["spare"]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_the_wait_is_no_part_of_an_attempts_timeout(kind: str) -> None:
    calls: list[str] = []

    def answer() -> str:
        calls.append(kind)
        if len(calls) == 1:
            raise limited({"retry-after-ms": "150"})
        return "facts"

    async def answer_async(topic: str) -> str:
        return answer()

    def answer_sync(topic: str) -> str:
        return answer()

    policy = RetryPolicy(2, base_delay=0, jitter=False)
    body = answer_sync if kind == "sync" else answer_async
    search = agent(timeout=0.1, retry=policy)(body)
    begin = time.perf_counter()

    result = run(search, topic="x", store="memory://")

    assert result.output == "facts"
    assert time.perf_counter() - begin >= 0.15
    assert result.agent_traces[0].duration_ms < 100
