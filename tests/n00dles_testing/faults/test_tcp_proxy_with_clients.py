"""The proxy between real servers and their usual clients: each fault's outcome is read back beside the proxy."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from n00dles_testing.faults import (
    CutAfterBytes,
    CutWhenIdle,
    Delay,
    Drip,
    Fault,
    LoseReply,
    LoseRequest,
    RefuseConnections,
    Stall,
    TCPProxy,
)
from n00dles_testing.servers import PostgresServer, ValkeyServer

pytest.importorskip("redis")
pytest.importorskip("psycopg")

import psycopg
import redis
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry


def before(url: str) -> TCPProxy:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return TCPProxy(parts.hostname, parts.port)


@pytest.fixture
def to_valkey(valkey_server: ValkeyServer) -> Iterator[TCPProxy]:
    with before(valkey_server.url) as proxy:
        yield proxy


@pytest.fixture
def beside(valkey_server: ValkeyServer) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(valkey_server.url) as client:
        yield client


@pytest.fixture
def client(valkey_server: ValkeyServer, to_valkey: TCPProxy) -> Iterator[redis.Redis]:
    """A client of Valkey through the proxy, which never tries again, and is connected."""
    with redis.Redis.from_url(to_valkey.url(valkey_server.url), retry=Retry(NoBackoff(), 0)) as through:
        through.ping()
        yield through


@pytest.mark.parametrize(
    ("fault", "count"), [(LoseRequest(containing=b"INCR"), None), (LoseReply(containing=b"INCR"), b"1")]
)
def test_redis_sees_the_same_error_whether_its_command_was_done_or_not(
    client: redis.Redis, beside: redis.Redis, to_valkey: TCPProxy, fault: LoseReply | LoseRequest, count: bytes | None
) -> None:
    with to_valkey.disturbed(fault), pytest.raises(redis.ConnectionError):
        client.incr("counter")

    assert beside.get("counter") == count


def test_redis_does_a_command_twice_when_the_client_repeats_it_blindly(
    valkey_server: ValkeyServer, beside: redis.Redis, to_valkey: TCPProxy
) -> None:
    with redis.Redis.from_url(to_valkey.url(valkey_server.url), retry=Retry(NoBackoff(), 1)) as careless:
        careless.ping()
        with to_valkey.disturbed(LoseReply(containing=b"INCR")):
            assert careless.incr("counter") == 2

    assert beside.get("counter") == b"2"


def test_redis_has_done_nothing_of_a_torn_command(
    client: redis.Redis, beside: redis.Redis, to_valkey: TCPProxy
) -> None:
    with to_valkey.disturbed(CutAfterBytes(1000)), pytest.raises(redis.ConnectionError):
        client.set("key", b"x" * 5000)

    assert beside.get("key") is None


def test_redis_looks_whether_it_was_cut_when_idle_and_connects_again(client: redis.Redis, to_valkey: TCPProxy) -> None:
    with to_valkey.disturbed(CutWhenIdle(0.1)) as fault:
        fault.wait()
        assert to_valkey.connections == 1

    assert client.ping()
    assert to_valkey.connections == 2


def test_redis_async_gives_up_in_time_on_a_half_open_connection_and_its_command_arrives_late(
    valkey_server: ValkeyServer, beside: redis.Redis, to_valkey: TCPProxy
) -> None:
    async def body() -> None:
        url = to_valkey.url(valkey_server.url)
        async with AsyncRedis.from_url(url, retry=AsyncRetry(NoBackoff(), 0), socket_timeout=0.3) as through:
            await through.ping()
            with to_valkey.disturbed(Stall("to_server")):
                with pytest.raises(redis.TimeoutError):
                    await through.set("late", "yes")
                assert beside.get("late") is None

    asyncio.run(body())

    deadline = time.monotonic() + 5
    while beside.get("late") is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert beside.get("late") == b"yes"


def test_redis_is_refused_and_then_let_in_again(valkey_server: ValkeyServer, to_valkey: TCPProxy) -> None:
    with redis.Redis.from_url(to_valkey.url(valkey_server.url), retry=Retry(NoBackoff(), 0)) as through:
        with to_valkey.disturbed(RefuseConnections()), pytest.raises(redis.ConnectionError):
            through.ping()
        assert through.ping()


@pytest.fixture
def to_postgres(postgres_server: PostgresServer) -> Iterator[TCPProxy]:
    with psycopg.connect(postgres_server.url) as connection:
        connection.execute("CREATE TABLE saved (n int)")
    with before(postgres_server.url) as proxy:
        yield proxy


def stored(server: PostgresServer) -> list[int]:
    with psycopg.connect(server.url) as connection:
        return [n for (n,) in connection.execute("SELECT n FROM saved ORDER BY n")]


@pytest.mark.parametrize(
    ("fault", "rows"), [(LoseRequest(containing=b"COMMIT"), []), (LoseReply(containing=b"COMMIT"), [1])]
)
def test_postgres_sees_the_same_error_whether_its_commit_was_done_or_not(
    postgres_server: PostgresServer, to_postgres: TCPProxy, fault: LoseReply | LoseRequest, rows: list[int]
) -> None:
    with psycopg.connect(to_postgres.url(postgres_server.url)) as connection, to_postgres.disturbed(fault):
        connection.execute("INSERT INTO saved VALUES (1)")
        with pytest.raises(psycopg.OperationalError):
            connection.commit()

    assert stored(postgres_server) == rows


def test_postgres_async_loses_the_reply_of_an_insert_that_is_done(
    postgres_server: PostgresServer, to_postgres: TCPProxy
) -> None:
    async def body() -> None:
        url = to_postgres.url(postgres_server.url)
        connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
        with to_postgres.disturbed(LoseReply(nth=2, containing=b"INSERT")):
            await connection.execute("INSERT INTO saved VALUES (1)")
            with pytest.raises(psycopg.OperationalError):
                await connection.execute("INSERT INTO saved VALUES (2)")
        await connection.close()

    asyncio.run(body())

    assert stored(postgres_server) == [1, 2]


def test_postgres_gets_all_through_a_slow_line(postgres_server: PostgresServer, to_postgres: TCPProxy) -> None:
    text = "é" * 2000
    faults: list[Fault] = [Drip(size=300, interval=0.001), Delay(0.001, jitter=0.003, seed=1)]
    url = to_postgres.url(postgres_server.url)
    with to_postgres.disturbed(*faults), psycopg.connect(url) as connection:
        row = connection.execute("SELECT %s::text", (text,)).fetchone()

    assert row == (text,)
    assert all(fault.fired > 20 for fault in faults)


def test_postgres_finds_out_at_its_next_statement_that_it_was_cut_when_idle(
    postgres_server: PostgresServer, to_postgres: TCPProxy
) -> None:
    with psycopg.connect(to_postgres.url(postgres_server.url), autocommit=True) as connection:
        with to_postgres.disturbed(CutWhenIdle(0.1)) as fault:
            fault.wait()
        assert not connection.broken
        with pytest.raises(psycopg.OperationalError):
            connection.execute("INSERT INTO saved VALUES (1)")

    assert stored(postgres_server) == []


def test_postgres_forgets_a_transaction_whose_connection_is_cut(
    postgres_server: PostgresServer, to_postgres: TCPProxy
) -> None:
    with psycopg.connect(to_postgres.url(postgres_server.url)) as connection:
        connection.execute("INSERT INTO saved VALUES (1)")
        assert to_postgres.cut() == 1
        with pytest.raises(psycopg.OperationalError):
            connection.commit()

    assert stored(postgres_server) == []


def test_through_the_proxy_a_server_comes_back_after_its_kill(
    valkey_server: ValkeyServer, to_valkey: TCPProxy, client: redis.Redis
) -> None:
    client.set("key", "kept")
    valkey_server.kill()
    for _ in range(2):
        with pytest.raises(redis.ConnectionError):
            client.ping()
    valkey_server.start()

    assert client.get("key") == b"kept"
    assert to_valkey.failed >= 1
