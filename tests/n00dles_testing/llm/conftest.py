"""One fake LLM server for all tests of the server; each test starts with an empty journal and a clean environment."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from n00dles_testing.llm import LLMServer


@pytest.fixture(scope="session")
def running_server() -> Iterator[LLMServer]:
    with LLMServer() as server:
        yield server


@pytest.fixture
def server(running_server: LLMServer) -> Iterator[LLMServer]:
    running_server.reset()
    with running_server.in_environment():
        yield running_server
