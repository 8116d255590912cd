"""W08: what a store may not hold while a node runs, seen from other processes, from the disk and from its server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psycopg
import pytest

from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.at_work import _lasting, _of_postgres, _of_valkey
from n00dles_testing.servers import PostgresServer, ValkeyServer
from n00dles_testing.verdicts import ClauseResult, Verdict

HOLDING = Path(__file__).parent / "holding_stores.py"


def w08_of(target: str, *, limit: float = 20.0) -> ClauseResult:
    [result] = check_store(target, clauses=["W08"], limit=limit).results
    return result


def test_a_store_that_holds_nothing_passes() -> None:
    result = w08_of("sqlite:///runs.db")

    assert (result.verdict, result.scenarios, result.reason) == (Verdict.PASS, 2, "")


def test_a_run_that_is_locked_until_its_save_keeps_another_process_out() -> None:
    result = w08_of(f"{HOLDING}:LocksARunUntilItIsSaved", limit=2.0)

    assert (result.verdict, result.reason) == (Verdict.FAIL, "a call in another process did not return within 1 s")


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ("ReadsInATransaction", "a transaction is open: one that reads index.db"),
        ("KeepsAFileOpenForEachRun", "64 descriptors were opened for 64 runs at work"),
        ("WithAPool", "load_or_create raised RuntimeError: the one connection is in use, by 'run-"),
    ],
)
def test_what_is_held_for_each_run_is_found(store: str, message: str) -> None:
    result = w08_of(f"{HOLDING}:{store}")

    assert result.verdict is Verdict.FAIL
    assert result.reason.startswith(message)


def test_postgres_is_asked_who_is_idle_in_a_transaction(postgres_server: PostgresServer) -> None:
    with psycopg.connect(postgres_server.url) as connection:
        before = asyncio.run(_of_postgres(postgres_server.url))
        connection.execute("SELECT 1")
        pid = connection.info.backend_pid

        [found] = asyncio.run(_of_postgres(postgres_server.url))

    assert before == set()
    assert found.startswith(f"process {pid}, since ")
    assert found.endswith(", after SELECT 1")


def test_valkey_is_asked_who_is_in_a_transaction(valkey_server: ValkeyServer) -> None:
    from redis import Redis

    with Redis.from_url(valkey_server.url) as client, client.pipeline() as pipeline:
        before = asyncio.run(_of_valkey(valkey_server.url))
        pipeline.watch("a key")

        [found] = asyncio.run(_of_valkey(valkey_server.url))

    assert before == set()
    assert found.endswith(", after watch")


def test_a_transaction_that_is_just_being_closed_is_not_held() -> None:
    seen = iter([{"first", "second"}, {"second"}, set[str]()])

    async def ask() -> set[str]:
        return next(seen)

    assert asyncio.run(_lasting(ask)) == []
