"""Claims where workers of many processes share a server: the dead are recognised, nobody waits, nothing is lost."""

from __future__ import annotations

import asyncio
import os
import signal
import time
import uuid
from typing import Any

import psycopg
import pytest
from redis.exceptions import ConnectionError as LostError

from n00dles.cli import main
from n00dles.stores import open_store, redis_claims
from n00dles.stores.postgres_pool import cut
from n00dles.stores.redis_session import Connections
from tests.n00dles.stores.postgres_server import Postgres
from tests.n00dles.stores.redis_server import RedisServer
from tests.n00dles.stores.test_claims import claimed, ids, put


@pytest.fixture(params=["postgres", "redis"])
def url(request: pytest.FixtureRequest) -> str:
    name = uuid.uuid4().hex
    if request.param == "postgres":
        postgres: Postgres = request.getfixturevalue("postgres")
        return postgres.url(name)
    redis: RedisServer = request.getfixturevalue("redis_server")
    return f"{redis.url}?prefix={name}:"


def on(url: str, work: Any) -> Any:
    async def main() -> Any:
        store: Any = open_store(url)
        try:
            return await work(store)
        finally:
            await store.aclose()

    return asyncio.run(main())


async def put_some(store: Any, *run_ids: str) -> None:
    for run_id in run_ids:
        await put(store, run_id)


def test_runs_of_a_worker_that_is_killed_are_claimed_at_once_and_not_before(url: str) -> None:
    on(url, lambda store: put_some(store, "r0", "r1"))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        on(url, claimed)
        os.write(writing, b"!")
        signal.pause()
    os.read(reading, 1)
    before = on(url, claimed)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)

    after = on(url, claimed)

    assert (before, ids(after)) == ([], ["r0", "r1"])


def test_the_clocks_of_hosts_decide_neither_what_is_old_nor_whose_turn_it_is(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    day, now = 86400.0, time.time
    offset = [0.0]
    monkeypatch.setattr("time.time", lambda: now() + offset[0])

    async def work(store: Any) -> Any:
        for run_id, days in [("ahead", 40), ("behind", -40)]:
            offset[0] = days * day
            await put(store, run_id)
            await put(store, f"{run_id} finished")
            ctx = await store.load(f"{run_id} finished")
            ctx.status = "finished"
            await store.save(ctx.run_id, ctx)
        listed = [run.run_id for run in await store.list_runs(status="finished")]
        for days in (40, 0, -40):
            offset[0] = days * day
            assert await store.prune(older_than=30 * day) == []
        return ids(await claimed(store)), listed, sorted(await store.prune(older_than=-60))

    assert on(url, work) == (
        ["ahead", "behind"],
        ["behind finished", "ahead finished"],
        ["ahead finished", "behind finished"],
    )


def test_what_prune_would_remove_goes_by_the_clock_of_the_server_too(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def work(store: Any) -> None:
        ctx = await store.load_or_create("young", {})
        ctx.status = "finished"
        await store.save("young", ctx)

    on(url, work)
    now = time.time
    monkeypatch.setattr("time.time", lambda: now() + 40 * 86400.0)

    main(["runs", "prune", "--older-than", "30d", "--dry-run", "--store", url])

    assert capsys.readouterr().out == ""


def test_workers_of_several_processes_share_the_runs(url: str) -> None:
    run_ids = [f"r{number}" for number in range(24)]
    on(url, lambda store: put_some(store, *run_ids))
    reading, writing = os.pipe()
    children = []
    for _ in range(3):
        child = os.fork()
        children.append(child)
        if child == 0:

            async def work(store: Any) -> None:
                while found := await claimed(store, limit=2):
                    os.write(writing, "".join(f"{run_id}\n" for run_id in ids(found)).encode())

            on(url, work)
            os.kill(os.getpid(), signal.SIGSTOP)  # it keeps what it has
            os._exit(0)
    for child in children:
        os.waitpid(child, os.WUNTRACED)
    os.close(writing)
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    assert sorted(os.read(reading, 10_000).decode().split()) == sorted(run_ids)


def lose_a_reply(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the answer to the next claim get lost, after the server has done what was asked."""
    lost, run_all, execute = list[str](), Connections.run_all, psycopg.AsyncConnection.execute

    async def run_all_and_lose(self: Connections, script: Any, calls: Any) -> Any:
        answer = await run_all(self, script, calls)
        if not lost:
            lost.append("redis")
            raise LostError("the answer was lost")
        return answer

    async def execute_and_lose(self: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        cursor = await execute(self, query, *arguments, **options)
        if b"SKIP LOCKED" in query and not lost:
            lost.append("postgres")
            cut(self)
            await execute(self, "SELECT 1")
        return cursor

    monkeypatch.setattr(Connections, "run_all", run_all_and_lose)
    monkeypatch.setattr(psycopg.AsyncConnection, "execute", execute_and_lose)
    return lost


def test_a_claim_whose_answer_is_lost_is_made_again_and_leaves_no_run_behind(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(store: Any) -> Any:
        await put_some(store, "r0", "r1", "r2")
        lost = lose_a_reply(monkeypatch)
        return lost, ids(await claimed(store, limit=2)), ids(await claimed(store))

    lost, first, rest = on(url, work)

    assert len(lost) == 1
    assert (first, rest) == (["r0", "r1"], ["r2"])


def test_postgres_passes_over_a_run_that_another_worker_is_claiming_and_does_not_wait(postgres: Postgres) -> None:
    schema = uuid.uuid4().hex

    async def work(store: Any) -> Any:
        await put_some(store, "r0", "r1")
        async with await psycopg.AsyncConnection.connect(postgres.server.url) as other:
            await other.execute(f"SELECT FROM \"{schema}\".runs WHERE run_id = 'r0' FOR UPDATE".encode())
            first = ids(await claimed(store))
        return first, ids(await claimed(store))

    assert on(postgres.url(schema, timeout=3), work) == (["r1"], ["r0"])


def test_redis_goes_through_its_indexes_by_pages_and_keeps_the_order(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_claims, "_FIRST_PAGE", 1)
    monkeypatch.setattr(redis_claims, "_LOOKED_AT_ONCE", 5)
    run_ids = [f"r{number}" for number in range(150)]  # some hash tags have several

    async def work(store: Any) -> Any:
        await put_some(store, *run_ids)
        one_by_one = [ids(await claimed(store, limit=1)) for _ in range(10)]
        return one_by_one, ids(await claimed(store, limit=200))

    one_by_one, rest = on(f"{redis_server.url}?prefix=pages:", work)

    assert one_by_one == [[run_id] for run_id in run_ids[:10]]
    assert rest == run_ids[10:]


def test_redis_does_not_hand_out_a_run_that_was_finished_while_it_looked(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_all = Connections.run_all

    async def work(store: Any) -> Any:
        contexts = [await put(store, "r0"), await put(store, "r1")]

        async def late(self: Connections, script: Any, calls: Any) -> Any:
            monkeypatch.undo()
            contexts[0].status = "finished"
            await store.save("r0", contexts[0])
            return await run_all(self, script, calls)

        monkeypatch.setattr(Connections, "run_all", late)
        return ids(await claimed(store)), await store.list_leases(["r0"])

    assert on(f"{redis_server.url}?prefix=late:", work) == (["r1"], [])
