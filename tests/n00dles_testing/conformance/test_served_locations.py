"""Stores that keep their runs with a server: which server, where the locations lie, and what is left behind."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from redis import Redis

from n00dles.errors import ConfigurationError
from n00dles_testing.conformance import check_store, served
from n00dles_testing.conformance.served import ServedLocations, Service, password_hidden
from n00dles_testing.servers import PostgresServer, ServerError, ValkeyServer, why_not_valkey
from n00dles_testing.verdicts import ClauseResult, Verdict

VALKEY_RUNS = "n00dles_testing.conformance.mutants.correct_valkey:ValkeyRuns"
needs_valkey = pytest.mark.skipif(bool(why := why_not_valkey()), reason=f"NOT RUN: {why}")


@pytest.mark.parametrize(
    ("target", "server", "says"),
    [
        ("postgresql://", None, "names no server. Add --server postgres"),
        ("redis://?timeout=2", None, "Add --server valkey"),
        ("postgresql://", "valkey", "write --server postgres"),
        ("postgresql://me:secret@host/db", "postgres", "names a server, and --server postgres would start another"),
        ("sqlite:///runs.db", "postgres", "is opened without one. Leave --server out"),
        ("memory://", "valkey", "is opened without one"),
        ("module:factory", "mysql", "write postgres or valkey"),
    ],
)
def test_a_server_that_does_not_fit_is_refused_with_what_to_write(target: str, server: str | None, says: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Service.of(target, server)

    assert says in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("target", "server", "kind", "is_the_users"),
    [
        ("postgresql://", "postgres", "postgres", False),
        ("redis://?timeout=2", "valkey", "valkey", False),
        ("postgres://host/db", None, "postgres", True),
        ("postgresql:///db?host=/run/postgresql", None, "postgres", True),
        ("rediss://host:6380/0", None, "valkey", True),
        ("unix:///run/valkey.sock", None, "valkey", True),
        ("module:factory", "valkey", "valkey", False),
    ],
)
def test_a_server_is_the_users_if_the_url_names_one(
    target: str, server: str | None, kind: str, is_the_users: bool
) -> None:
    service = Service.of(target, server)

    assert service is not None
    assert (service.kind, service.url is not None) == (kind, is_the_users)


def test_other_stores_have_no_server() -> None:
    assert Service.of("sqlite:///runs.db", None) is None
    assert Service.of("module:factory", None) is None
    assert Service.of("postgresql://host/{location}", None) is None


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("rediss://host:6380/0", "encrypted"),
        ("postgresql://host/db?sslmode=verify-full", "encrypted"),
        ("unix:///run/valkey.sock", "does not name one host"),
        ("postgresql://one,two/db", "does not name one host"),
        ("postgresql:///db?host=/run", "does not name one host"),
        ("postgresql://host/db?sslmode=prefer", ""),
    ],
)
def test_a_proxy_needs_a_host_and_bytes_that_it_can_pass(url: str, says: str) -> None:
    service = Service.of(url, None)

    assert service is not None
    assert says in service.why_no_proxy
    assert bool(service.why_no_proxy) is bool(says)


def test_passwords_are_hidden_wherever_a_target_is_shown() -> None:
    text = "redis://:se/cret@host:1/0 and postgresql://me:secret@host/db?password=secret&x=1"

    assert password_hidden(text) == "redis://:…@host:1/0 and postgresql://me:…@host/db?password=…&x=1"


def results(target: str, *clauses: str, server: str | None = None) -> list[ClauseResult]:
    report = check_store(target, clauses=clauses, server=server)
    assert "secret" not in str(report.to_dict())
    return list(report.results)


@needs_valkey
def test_the_suite_starts_a_server_for_our_own_store() -> None:
    report = check_store("redis://?timeout=5", clauses=("S06", "S10", "P01"), server="valkey")

    [s06, s10, p01] = report.results
    assert s06.verdict is Verdict.PASS
    assert (s10.verdict, p01.verdict) == (Verdict.NOT_APPLICABLE, Verdict.NOT_APPLICABLE)
    assert "the runs lie with a server (address" in p01.reason
    assert (
        report.notes[0]
        == "a throw-away Valkey server was started for this check; each location is a fresh prefix on it"
    )


@needs_valkey
@pytest.mark.usefixtures("fresh_workers")
def test_the_server_of_a_check_ends_with_it_and_leaves_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as temporary:  # a short path: else the server would lie elsewhere
        monkeypatch.setenv("TMPDIR", temporary)

        report = check_store("redis://?timeout=5", clauses=("S01",), server="valkey")

        assert [result.verdict for result in report.results] == [Verdict.PASS]
        assert list(Path(temporary).iterdir()) == []


@needs_valkey
def test_a_factory_gets_the_url_of_a_fresh_database_and_keeps_what_a_server_can_lose() -> None:
    [s16, c05, w05, w06] = results(VALKEY_RUNS, "S16", "C05", "W05", "W06", server="valkey")

    assert [each.verdict for each in (s16, c05, w05, w06)] == [Verdict.PASS] * 4
    assert "replies were lost between the store and its server" in c05.reason
    assert (w05.scenarios, w06.scenarios) == (2, 28)


class BusyServer:
    """Hands out databases, and is slow to drop the last of them."""

    is_running = True

    def __init__(self, error: Exception | None) -> None:
        self.error = error
        self.dropped: list[str] = []
        self._handed_out = 0

    def fresh(self) -> str:
        self._handed_out += 1
        return f"postgresql:///runs_{self._handed_out}"

    def drop(self, url: str) -> None:
        self.dropped.append(url)
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        self.is_running = False


@pytest.mark.parametrize(
    ("error", "seconds", "dropped"),
    [
        (None, 60.0, 3),
        (TimeoutError("timed out"), 60.0, 1),
        (ServerError("PostgreSQL closed the connection"), 60.0, 1),
        (None, 0.0, 0),
    ],
)
def test_a_server_too_busy_to_remove_databases_is_no_fault_of_the_store(
    error: Exception | None, seconds: float, dropped: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = BusyServer(error)
    monkeypatch.setattr(served, "_TIME_TO_CLEAR", seconds)
    locations = ServedLocations(Service("postgres", "postgresql:///theirs"), "nonce")
    locations.service, locations.server = Service("postgres"), server  # type: ignore[assignment]
    for _ in range(3):
        locations.fresh()

    locations.clear()
    locations.clear()

    assert len(server.dropped) == dropped


@needs_valkey
def test_on_the_users_own_valkey_nothing_is_left_and_nothing_killed(valkey_server: ValkeyServer) -> None:
    before = valkey_server.pid
    with Redis.from_url(valkey_server.url) as client:
        client.set("n00dles:mine", "kept")

        [s01, w05, w06] = results(f"{valkey_server.url}?timeout=1", "S01", "W05", "W06")

        assert [each.verdict for each in (s01, w05, w06)] == [Verdict.PASS, Verdict.NOT_RUN, Verdict.PASS]
        assert "n00dles-testing check redis:// --server valkey --clause W05" in w05.reason
        assert client.keys("*") == [b"n00dles:mine"]
    assert valkey_server.pid == before


def test_on_the_users_own_postgresql_no_schema_is_left(postgres_server: PostgresServer) -> None:
    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA n00dles_check_of_mine")

        [s01] = results(postgres_server.url, "S01")

        schemas = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'n00dles%'").fetchall()
        assert s01.verdict is Verdict.PASS
        assert schemas == [("n00dles_check_of_mine",)]


@pytest.mark.parametrize("target", ["memory://", "sqlite:///{folder}/runs.db"])
def test_a_store_that_talks_to_nobody_has_no_server_to_lose(target: str, tmp_path: Path) -> None:
    for result in results(target.format(folder=tmp_path), "W05", "W06"):
        assert result.verdict is Verdict.NOT_APPLICABLE
        assert result.reason.startswith("the store talks to no server: a process that saved a run had no connection")


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_server_that_the_suite_does_not_know_is_not_disturbed(
    listening: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LISTENING", str(listening))
    store = tmp_path / "talking.py"
    store.write_text(
        "import os, socket\n"
        "from n00dles_testing.conformance.mutants.correct import JSONFiles\n\n"
        "class Talks(JSONFiles):\n"
        "    def save(self, run_id, context):\n"
        "        with socket.create_connection(('127.0.0.1', int(os.environ['LISTENING']))):\n"
        "            super().save(run_id, context)\n"
    )

    [w05] = results(f"{store}:Talks", "W05")

    assert w05.verdict is Verdict.NOT_RUN
    assert "talks to another process (address" in w05.reason
    assert "add --server postgres, or --server valkey" in w05.reason
