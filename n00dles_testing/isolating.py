"""The fixtures that keep a test to itself: its store, the network, the models and the time.

Part of the pytest plugin, and loaded in every pytest run with it: so it imports nothing but pytest until a test asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from n00dles.stores.base import StateStore

    from .fixtures import LazyLLM
    from .frozen_time import FrozenTime
    from .llm.live import LiveLLM
    from .llm.mock import MockLLM
    from .llm.scripted_server import ScriptedServer
    from .no_network import NetworkGuard
    from .no_sleep import NoSleep

__all__ = [
    "frozen_time",
    "llm_server",
    "mock_llm",
    "n00dles_folder",
    "n00dles_llm",
    "n00dles_store",
    "no_network",
    "no_sleep",
]


@pytest.fixture(scope="session")
def n00dles_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what the fixtures keep in files."""
    return tmp_path_factory.mktemp("fixtures")


@pytest.fixture
def n00dles_store(request: pytest.FixtureRequest, n00dles_folder: Path) -> Iterator[StateStore]:
    """The store of this test alone: an empty SQLite file, which `run` and `resume` use if they are not told otherwise.

    Each fixture of this plugin that runs pipelines asks for it. What the test configures is undone afterwards.
    """
    from .isolation import store_of_its_own

    with store_of_its_own(request.node, n00dles_folder) as store:
        yield store


@pytest.fixture
def no_network(
    request: pytest.FixtureRequest, n00dles_folder: Path, n00dles_store: StateStore
) -> Iterator[NetworkGuard | None]:
    """Let no connection leave this machine: the test fails at once, and is told who called.

        def test_answers(no_network): ...

    Each fixture of this plugin that runs pipelines asks for it. `@pytest.mark.n00dles_network` switches it off;
    `@pytest.mark.n00dles_network("db.internal")` lets these hosts through.
    """
    from .isolation import file_of
    from .network_reports import guarded

    with guarded(request, file_of(request.node, n00dles_folder, ".attempts")) as guard:
        yield guard


@pytest.fixture
def mock_llm(request: pytest.FixtureRequest, no_network: NetworkGuard | None) -> Iterator[MockLLM]:
    """Answer the models that this test calls from a script, in this process, without network and without keys.

        def test_writes(mock_llm):
            mock_llm.reply("researcher", "Three facts.")
            mock_llm.fail("writer", RateLimited(retry_after=2), then=Article(title="…"))

    A call that the script has no reply for fails the test, and so does a reply that nobody asked for. It reaches every
    client of httpx and httpx2, sync and async, in all threads of this process; other clients and other processes need
    `llm_server`.
    """
    from .llm_fixtures import mocked

    with mocked(request) as mock:
        yield mock


@pytest.fixture
def llm_server(
    request: pytest.FixtureRequest, n00dles_llm: LazyLLM, no_network: NetworkGuard | None
) -> Iterator[ScriptedServer | LiveLLM]:
    """Answer models from a script, over real HTTP, by a server of its own process: otherwise as `mock_llm`.

        def test_pays_twice_if_the_reply_is_lost(llm_server):
            llm_server.fail("writer", LostReply(), then="A story.")
            run(content_pipeline, topic="x")
            assert [call.paid for call in llm_server.calls] == [True, True]

    It answers every client that the environment variables of the SDKs lead to it, also those of other processes, which
    it can kill (`KillsClient`). One process serves all tests; each has a script and a journal of its own.
    """
    from .llm_fixtures import served

    with served(request, n00dles_llm.server) as server:
        yield server


@pytest.fixture
def frozen_time(no_network: NetworkGuard | None) -> Iterator[FrozenTime]:
    """Hold the clock of this process; the test moves it.

        def test_prunes(frozen_time):
            frozen_time.move_to("2030-01-31")
            frozen_time.tick(30.0)

    Leases, retention, durations and time stamps follow it. Event loops, time-outs of nodes, threads, servers and other
    processes keep the real one.
    """
    from .frozen_time import held_clock

    with held_clock() as clock:
        yield clock


@pytest.fixture
def no_sleep(request: pytest.FixtureRequest, no_network: NetworkGuard | None) -> Iterator[NoSleep]:
    """Record sleeps and back-offs instead of sleeping them, and fail the test if async code calls `time.sleep`.

        def test_backs_off(no_sleep):
            run(content_pipeline, topic="x")
            assert [call.seconds for call in no_sleep.calls] == [1.0, 2.0]

    What is shorter than 0.05 s is slept. See `NoSleep`.
    """
    from .no_sleep import watched

    with watched(request) as sleeps:
        yield sleeps


@pytest.fixture(scope="session")
def n00dles_llm() -> Iterator[LazyLLM]:
    """A fake LLM server for the whole session, started when the first pipeline needs it."""
    from .fixtures import LazyLLM

    llm = LazyLLM()
    yield llm
    llm.stop()
