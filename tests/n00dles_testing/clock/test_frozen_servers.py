"""Clients of real servers work under a held clock: they wait for the server, whose clock is real."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from n00dles import PostgresStateStore, RedisStateStore, RunLockedError, agent, arun, pipeline
from n00dles_testing import FrozenTime
from n00dles_testing.servers import PostgresServer, ValkeyServer


@agent
async def shout(text: str) -> str:
    return text.upper()


@agent
def whisper(text: str) -> str:
    return text.lower()


flow = pipeline(shout >> whisper, name="flow")


async def lived(store: Any, clock: FrozenTime) -> None:
    """Run, list, prune and lock in a store on a server."""
    clock.move_to("2030-01-01")
    async with asyncio.timeout(20):
        assert (await arun(flow, run_id="old", store=store, text="X")).output == "x"
        clock.move_to("2030-02-15")
        assert (await arun(flow, run_id="new", store=store, text="X")).output == "x"
        assert [found.run_id for found in await store.list_runs()] == ["new", "old"]
        assert await store.prune(older_than=30 * 86_400) == []  # by the server's clock both have just ended
        assert sorted(await store.prune(older_than=0)) == ["new", "old"]

        lease = await store.acquire("held", "first", 30.0)
        clock.tick(31)
        with pytest.raises(RunLockedError, match="held by first"):  # by the server's clock it has just begun
            await store.acquire("held", "second", 30.0)
        await store.release(lease)
        await store.aclose()


def test_psycopg_does_not_hang(frozen_time: FrozenTime, postgres_server: PostgresServer) -> None:
    import psycopg

    async def notified() -> list[Any]:
        async with await psycopg.AsyncConnection.connect(postgres_server.url, autocommit=True) as connection:
            return [each async for each in connection.notifies(timeout=0.02)]

    asyncio.run(lived(PostgresStateStore(postgres_server.url), frozen_time))

    assert asyncio.run(asyncio.wait_for(notified(), 10)) == []


def test_redis_does_not_hang(frozen_time: FrozenTime, valkey_server: ValkeyServer) -> None:
    import redis

    asyncio.run(lived(RedisStateStore(valkey_server.url), frozen_time))

    with redis.Redis.from_url(valkey_server.url) as client:
        assert client.lock("door", timeout=5).acquire()
        assert not client.lock("door", timeout=5, sleep=0.005).acquire(blocking_timeout=0.02)
