"""What a mocked call of a model costs, from the SDK's method to its answer: in-process, and through the server."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from .figure import Figure, alternated

__all__ = ["figures"]

ROUNDS = 15
CALLS = 20


def figures() -> Iterator[Figure]:
    """Measure, and yield each figure as soon as it is known."""
    from n00dles_testing.llm import LLMServer
    from n00dles_testing.llm.mock import MockLLM
    from n00dles_testing.llm.scripted_server import ScriptedServer

    processor: dict[str, list[float]] = {"mock": [], "server": []}
    with LLMServer() as running:
        mock, server = MockLLM(), ScriptedServer(running, "bench")
        in_process, served = alternated(
            ROUNDS,
            lambda: _milliseconds(mock, mock.started, processor["mock"]),
            lambda: _milliseconds(server, server.started, processor["server"]),
        )
    yield _figure("mocked call, in-process", in_process, processor["mock"], 3.0)
    yield _figure("mocked call, through the server", served, processor["server"], 6.0)


def _milliseconds(script: Any, started: Callable[[], AbstractContextManager[Any]], processor: list[float]) -> float:
    import openai

    script.reply(None, "Three facts.", times=CALLS + 1)
    asked: list[Any] = [{"role": "user", "content": "Research agentic search."}]
    with started(), openai.OpenAI() as client:
        client.chat.completions.create(model="gpt-4o-mini", messages=asked)  # the first one connects
        begun, worked = time.perf_counter(), time.process_time()
        for _ in range(CALLS):
            client.chat.completions.create(model="gpt-4o-mini", messages=asked)
        processor.append((time.process_time() - worked) * 1000 / CALLS)
        return (time.perf_counter() - begun) * 1000 / CALLS


def _figure(name: str, found: list[float], processor: list[float], at_most: float) -> Figure:
    detail = (
        f"openai, chat completions; {min(found):.2f} to {max(found):.2f} ms in {ROUNDS} rounds of {CALLS} calls; "
        f"{statistics.median(processor):.2f} ms of it is processor time of the test's process"
    )
    return Figure(name, statistics.median(found), "ms a call", detail, at_most=at_most)
