"""Dying in mid-body: only the watched body is looked at, line by line, wherever it runs."""

from __future__ import annotations

import asyncio
import functools
import sys
import threading

import pytest

from n00dles_testing.crash.tracing import LineWatch, code_of, watching


def body(text: str) -> str:
    first = text + "a"
    second = helper(first)
    return second + ""


def helper(text: str) -> str:
    longer = text + "b"
    return longer + ""


async def slow_body(pause: asyncio.Event) -> str:
    first = "a"
    await pause.wait()
    second = "b"
    return first + second


def test_the_lines_of_a_body_are_counted_and_those_of_what_it_calls_are_not() -> None:
    watch = LineWatch(body.__code__)

    with watching(watch):
        assert body("") == "ab"

    assert watch.lines == 3


def test_the_action_comes_before_the_line_is_executed() -> None:
    seen: list[int] = []
    watch = LineWatch(body.__code__, 2, seen.append)

    with watching(watch):
        body("")

    assert seen == [body.__code__.co_firstlineno + 2]


def test_what_the_action_raises_ends_the_body_at_that_line() -> None:
    class DeathError(BaseException):
        pass

    def die(line: int) -> None:
        raise DeathError

    with pytest.raises(DeathError), watching(LineWatch(body.__code__, 3, die)):
        body("")


def test_a_body_in_a_thread_is_watched_there_and_nowhere_else() -> None:
    watch = LineWatch(body.__code__)

    def work() -> None:
        with watching(watch):
            body("")

    thread = threading.Thread(target=work)
    thread.start()
    body("")
    thread.join()

    assert watch.lines == 3


def test_async_bodies_that_overlap_are_counted_apart() -> None:
    watches = [LineWatch(slow_body.__code__), LineWatch(slow_body.__code__)]

    async def watched(watch: LineWatch, pause: asyncio.Event) -> str:
        with watching(watch):
            return await slow_body(pause)

    async def main() -> list[str]:
        pause = asyncio.Event()
        tasks = [asyncio.ensure_future(watched(watch, pause)) for watch in watches]
        await asyncio.sleep(0)
        pause.set()
        return list(await asyncio.gather(*tasks))

    assert asyncio.run(main()) == ["ab", "ab"]
    assert [watch.lines for watch in watches] == [4, 4]


def test_the_trace_function_of_before_comes_back() -> None:
    before = sys.gettrace()

    with watching(LineWatch(body.__code__)):
        body("")

    assert sys.gettrace() is before


class Callable:
    def __call__(self) -> None:
        """Do nothing."""


def test_the_body_behind_decorators_partials_and_objects_is_found() -> None:
    @functools.wraps(body)
    def wrapper(text: str) -> str:
        return body(text)

    assert code_of(wrapper) is body.__code__
    assert code_of(functools.partial(wrapper, "x")) is body.__code__
    assert code_of(Callable()) is Callable.__call__.__code__
    assert code_of(len) is None
