"""One fake LLM server for all provider tests; each test starts with an empty journal and a clean environment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

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


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Take every way to sign in away, also those that the machine has of its own."""
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_ADMIN_KEY",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_PROFILE",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))
