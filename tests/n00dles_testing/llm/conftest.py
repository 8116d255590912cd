"""One fake LLM server for all tests of the server; each test starts with an empty journal and a clean environment."""

from __future__ import annotations

from collections.abc import Iterator

import anthropic
import openai
import pytest

from n00dles_testing.llm import LLMServer
from n00dles_testing.llm.scripted_server import ScriptedServer


@pytest.fixture(scope="session")
def running_server() -> Iterator[LLMServer]:
    with LLMServer() as server:
        yield server


@pytest.fixture
def server(running_server: LLMServer) -> Iterator[LLMServer]:
    running_server.reset()
    with running_server.in_environment():
        yield running_server


@pytest.fixture
def llm(running_server: LLMServer) -> Iterator[ScriptedServer]:
    """A script of this test's own, which has to be followed."""
    with ScriptedServer(running_server, "scripted").checked() as scripted:
        yield scripted


@pytest.fixture(scope="session")
def openai_client(running_server: LLMServer) -> Iterator[openai.OpenAI]:
    """A client of what `llm` scripts; to make one takes longer than a test."""
    base_url = running_server.environment_of("scripted")["OPENAI_BASE_URL"]
    with openai.OpenAI(base_url=base_url, api_key="sk-x", max_retries=0) as client:
        yield client


@pytest.fixture(scope="session")
def anthropic_client(running_server: LLMServer) -> Iterator[anthropic.Anthropic]:
    base_url = running_server.environment_of("scripted")["ANTHROPIC_BASE_URL"]
    with anthropic.Anthropic(base_url=base_url, api_key="sk-ant-x", max_retries=0) as client:
        yield client
