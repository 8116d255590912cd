"""What is told of threads that are there when an executor has returned."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from n00dles_testing.crash.remains import _is_at_work


def until_told(reached: threading.Event, told: threading.Event) -> None:
    reached.set()
    told.wait(10)


@pytest.mark.parametrize(("when", "expected"), [("at work", True), ("handing over", False), ("idle", False)])
def test_a_thread_of_a_pool_is_at_work_until_its_work_has_ended(when: str, expected: bool) -> None:
    reached, told = threading.Event(), threading.Event()

    def stop(at: str) -> Callable[[], None]:
        return lambda: until_told(reached, told) if when == at else None

    with ThreadPoolExecutor(1) as pool:
        begin = threading.Event()
        future = pool.submit(lambda: (begin.wait(10), stop("at work")()))
        future.add_done_callback(lambda _: stop("handing over")())
        begin.set()
        if when == "idle":
            future.result(10)
        else:
            assert reached.wait(10)
        [thread] = pool._threads
        at_work = _is_at_work(sys._current_frames()[thread.ident])  # type: ignore[index]
        told.set()

    assert at_work is expected
