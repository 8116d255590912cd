"""Leases on a Redis server: its clock decides, and the death of a holder on this host is seen at once."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from n00dles import RunLockedError
from n00dles.stores.redis import RedisStateStore
from tests.n00dles.stores.redis_server import RedisServer
from tests.n00dles.stores.test_redis import with_redis

HOLDER = """
import asyncio, sys, time
from n00dles.stores.redis import RedisStateStore

async def main():
    await RedisStateStore(sys.argv[1], prefix=sys.argv[2]).acquire("r", "the child", 3600)
    print("held", flush=True)
    time.sleep(60)

asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files of the test's own, also in its children."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_a_holder_that_is_killed_frees_its_run_at_once_and_not_before(redis_server: RedisServer) -> None:
    async def acquired(store: RedisStateStore) -> Any:
        return await store.acquire("r", "B", 30), await store.list_leases(["r"])

    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, redis_server.url, "dead:"], stdout=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        with pytest.raises(RunLockedError, match="held by the child"):
            with_redis(redis_server.url, acquired, prefix="dead:")
        child.kill()
        assert child.wait(10) == -signal.SIGKILL

        lease, held = with_redis(redis_server.url, acquired, prefix="dead:")

    assert lease.holder == "B"
    assert [(found.holder, found.token) for found in held] == [("B", lease.token)]


def test_a_dead_holder_of_another_host_has_to_expire(redis_server: RedisServer, folder: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, redis_server.url, "far:"], stdout=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        child.kill()
    for mark in folder.glob("n00dles-alive-*/*"):
        mark.unlink()  # another host does not see it

    with pytest.raises(RunLockedError, match="held by the child"):
        with_redis(redis_server.url, lambda store: store.acquire("r", "B", 30), prefix="far:")


def test_an_expired_lease_can_be_renewed_until_somebody_has_had_the_run(redis_server: RedisServer) -> None:
    async def work(store: RedisStateStore) -> Any:
        first = await store.acquire("r", "A", 0.05)
        await asyncio.sleep(0.1)
        gone = await store.list_leases(["r"])
        first = await store.renew(first, 0.05)
        held = await store.list_leases(["r"])
        await asyncio.sleep(0.1)
        second = await store.acquire("r", "B", 60)
        with pytest.raises(RunLockedError, match="was taken over by B"):
            await store.renew(first, 60)
        await store.release(first)  # which is not its lease any more
        still = await store.list_leases(["r"])
        await store.release(second)
        with pytest.raises(RunLockedError, match="no longer held by this worker"):
            await store.renew(first, 60)
        return gone, [lease.holder for lease in held], [lease.holder for lease in still]

    assert with_redis(redis_server.url, work, prefix="expired:") == ([], ["A"], ["B"])


def test_a_clock_of_the_worker_that_steps_gives_no_second_holder(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(store: RedisStateStore) -> None:
        await store.acquire("r", "A", 60)
        for now in (0.0, 4e9):
            monkeypatch.setattr("time.time", lambda now=now: now)
            with pytest.raises(RunLockedError):
                await store.acquire("r", "B", 60)

    with_redis(redis_server.url, work, prefix="clock:")


def test_a_deleted_run_is_free_and_its_holder_is_told(redis_server: RedisServer) -> None:
    async def work(store: RedisStateStore) -> str:
        await store.load_or_create("r", {})
        first = await store.acquire("r", "A", 60)
        await store.delete("r")
        with pytest.raises(RunLockedError):
            await store.renew(first, 60)
        return (await store.acquire("r", "B", 60)).holder

    assert with_redis(redis_server.url, work, prefix="deleted:") == "B"


def test_a_cancelled_acquire_leaves_no_lease(redis_server: RedisServer) -> None:
    async def work(store: RedisStateStore) -> Any:
        await store.list_runs()  # so that it is connected
        cancelled = 0
        for pauses in range(8):
            call = asyncio.create_task(store.acquire("r", "A", 3600))
            for _ in range(pauses):
                await asyncio.sleep(0)
            if call.done():  # the server was faster
                await store.release(await call)
                continue
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            cancelled += 1
            await store.release(await store.acquire("r", "B", 3600))
        return cancelled, await store.list_leases(["r"])

    cancelled, leases = with_redis(redis_server.url, work, prefix="acquire:")

    assert cancelled >= 2
    assert leases == []
