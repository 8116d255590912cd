"""The connections of a Redis store: so many as were agreed, each for one at a time, and none lost to a failure."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from redis.exceptions import ConnectionError as NoConnectionError

from n00dles.stores.redis_pool import Pool
from tests.n00dles.stores.redis_server import RedisServer, free_port


def test_who_finds_all_connections_in_use_waits_for_one_and_may_give_up(redis_server: RedisServer) -> None:
    async def main() -> tuple[bool, bool]:
        pool: Any = Pool.from_url(redis_server.url, max_connections=1, protocol=2)
        try:
            first = await pool.get_connection()
            one, other = (asyncio.create_task(pool.get_connection()) for _ in range(2))
            await asyncio.sleep(0)
            one.cancel()
            await asyncio.sleep(0)
            waits = not other.done()
            await pool.release(first)
            return waits, await asyncio.wait_for(other, 5) is first
        finally:
            await pool.disconnect()

    assert asyncio.run(main()) == (True, True)


def test_a_connection_that_cannot_be_made_leaves_its_place() -> None:
    async def main() -> None:
        pool: Any = Pool.from_url(f"redis://127.0.0.1:{free_port()}", max_connections=1, protocol=2)
        for _ in range(2):
            with pytest.raises(NoConnectionError):
                await asyncio.wait_for(pool.get_connection(), 5)

    asyncio.run(main())
