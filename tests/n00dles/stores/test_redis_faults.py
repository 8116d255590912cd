"""Servers that are down, refuse, forget or stand still: a typed error in time, and nothing lost."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import pytest

from n00dles import ReadOnlyStoreError, StateStoreError
from n00dles.stores import redis_records
from n00dles.stores.redis import RedisStateStore
from tests.n00dles.stores.redis_server import RedisServer, free_port
from tests.n00dles.stores.test_claims import claimed
from tests.n00dles.stores.test_redis import saved, with_redis


def refused(url: str, **options: Any) -> str:
    """Return the error of a first call, which has to come within the timeout."""
    started = time.monotonic()
    with pytest.raises(StateStoreError) as caught:
        with_redis(url, lambda store: store.load_or_create("r-81", {}), **options)
    assert time.monotonic() - started < options.get("timeout", 10) + 1
    return str(caught.value)


def test_a_cancelled_call_leaves_its_answer_to_no_other(own_redis: RedisServer) -> None:
    async def work(store: RedisStateStore) -> Any:
        ctx = await saved(store, "r", a=1)
        await saved(store, "other", b="other")
        ctx.checkpoint("b", 2)
        own_redis.pause()
        call = asyncio.create_task(store.save("r", ctx))
        await asyncio.sleep(0.2)
        assert not call.done()
        call.cancel()
        started = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await call
        waited = time.monotonic() - started
        own_redis.resume()
        other = await store.load("other")
        summaries = await store.list_runs()
        ctx.checkpoint("c", 3)
        await store.save("r", ctx)
        return waited, other, summaries, await store.load("r")

    waited, other, summaries, stored = with_redis(own_redis.url, work, max_connections=1)

    assert 0.5 < waited < 3
    assert other.completed == {"b": "other"}
    assert {run.run_id for run in summaries} == {"r", "other"}
    assert stored.completed == {"a": 1, "b": 2, "c": 3}


def test_a_call_that_is_cancelled_while_the_server_answers_is_done_when_it_ends(redis_server: RedisServer) -> None:
    async def work(store: RedisStateStore) -> Any:
        ctx = await saved(store, "r", a=1)
        ctx.checkpoint("b", 2)
        call = asyncio.create_task(store.save("r", ctx))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        return ctx.unsaved, (await store.load("r")).completed  # type: ignore[union-attr]

    unsaved, completed = with_redis(redis_server.url, work, prefix="cancelled:")

    assert (unsaved, completed) == ((), {"a": 1, "b": 2})


def test_a_server_that_is_killed_and_restarted_keeps_what_was_acknowledged(own_redis: RedisServer) -> None:
    async def work(store: RedisStateStore) -> Any:
        ctx = await saved(store, "r", a=1)
        own_redis.kill()
        ctx.checkpoint("b", 2)
        call = asyncio.create_task(store.save("r", ctx))
        await asyncio.sleep(0.2)
        assert not call.done()
        await asyncio.to_thread(own_redis.start)
        await call  # the server knows no script any more
        return await store.load("r")

    stored = with_redis(own_redis.url, work)

    assert (stored.completed, stored.revision) == ({"a": 1, "b": 2}, 3)


def test_a_server_that_stays_away_is_an_error_and_the_store_works_when_it_is_back(own_redis: RedisServer) -> None:
    async def work(store: RedisStateStore) -> Any:
        ctx = await saved(store, "r", a=1)
        own_redis.kill()
        ctx.checkpoint("b", 2)
        with pytest.raises(StateStoreError, match=r"\(run 'r'\) failed: ConnectionError.*check that the server is up"):
            await store.save("r", ctx)
        own_redis.start()
        await store.save("r", ctx)
        return await store.load("r")

    assert with_redis(own_redis.url, work, timeout=0.5).completed == {"a": 1, "b": 2}


def test_a_server_that_stands_still_is_an_error_in_time(own_redis: RedisServer) -> None:
    async def work(store: RedisStateStore) -> Any:
        ctx = await saved(store, "r", a=1)
        own_redis.pause()
        ctx.checkpoint("b", 2)
        started = time.monotonic()
        with pytest.raises(StateStoreError, match="no answer came within 1 s"):
            await store.save("r", ctx)
        waited = time.monotonic() - started
        own_redis.resume()
        await store.save("r", ctx)
        return waited, ctx.revision, await store.load("r")

    waited, revision, stored = with_redis(own_redis.url, work, timeout=1)

    assert waited < 2
    # The first call may have landed after all; it is then continued.
    assert (stored.completed, stored.revision) == ({"a": 1, "b": 2}, revision)


def test_a_full_memory_is_an_error_and_the_record_stays(own_redis: RedisServer) -> None:
    async def work(store: RedisStateStore) -> Any:
        ctx = await saved(store, "r", a=1)
        own_redis.command("CONFIG", "SET", "maxmemory", "1")
        ctx.checkpoint("b", "x" * 1000)
        with pytest.raises(StateStoreError, match=r"its memory is full: raise maxmemory"):
            await store.save("r", ctx)
        before = await store.load("r")
        await store.delete("never")  # takes no memory
        own_redis.command("CONFIG", "SET", "maxmemory", "0")
        await store.save("r", ctx)
        return before, await store.load("r")

    before, after = with_redis(own_redis.url, work)

    assert before.completed == {"a": 1}
    assert after.completed == {"a": 1, "b": "x" * 1000}


def test_rights_that_are_taken_away_are_told_and_nothing_is_lost(own_redis: RedisServer) -> None:
    own_redis.command("ACL", "SETUSER", "worker", "on", ">s3cret", "~*", "+@all")

    async def work(store: RedisStateStore) -> Any:
        ctx = await saved(store, "r", a=1)
        ctx.checkpoint("b", 2)
        own_redis.command("ACL", "SETUSER", "worker", "-hset")
        with pytest.raises(StateStoreError, match=r"worker@.*\(run 'r'\) failed: .*its user lacks a right") as caught:
            await store.save("r", ctx)
        before = await store.load("r")
        own_redis.command("ACL", "SETUSER", "worker", "+hset")
        await store.save("r", ctx)
        return str(caught.value), before, await store.load("r")

    told, before, after = with_redis(f"redis://worker:s3cret@127.0.0.1:{own_redis.port}", work)

    assert "s3cret" not in told
    assert (before.completed, after.completed, after.revision) == ({"a": 1}, {"a": 1, "b": 2}, 3)


def test_the_rights_that_the_docs_name_are_enough(own_redis: RedisServer) -> None:
    rights = ["+@read", "+@write", "+@scripting", "+@connection", "+config|get", "+info", "+time"]
    own_redis.command("ACL", "SETUSER", "worker", "on", ">s3cret", "~{n00dles:*", "-@all", *rights)

    async def work(store: RedisStateStore) -> Any:
        ctx = await saved(store, "r", a=1)
        ctx.pipeline = "flow"
        await store.save("r", ctx)
        (claim,) = await store.claim(["flow"], "A", 60)
        await store.renew(claim.lease, 60)
        await store.release(claim.lease)
        listed = [run.run_id for run in await store.list_runs()]
        pruned = await store.prune(older_than=0)
        await store.delete("r")
        return listed, pruned, await store.load("r")

    assert with_redis(f"redis://worker:s3cret@127.0.0.1:{own_redis.port}", work) == (["r"], [], None)


def test_an_output_that_is_too_large_is_refused_with_its_size(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(store: RedisStateStore) -> Any:
        ctx = await saved(store, "r", a=1)
        monkeypatch.setattr(redis_records, "_LARGEST", 1_000)
        ctx.checkpoint("b", "x" * 2_000)
        with pytest.raises(StateStoreError, match=r"run 'r' was not saved: the output of node 'b' has 2,0.. bytes"):
            await store.save("r", ctx)
        ctx.checkpoint("b", "elsewhere")
        await store.save("r", ctx)
        return await store.load("r")

    assert with_redis(redis_server.url, work, prefix="large:").completed == {"a": 1, "b": "elsewhere"}


def test_a_value_that_the_server_does_not_take_is_an_error_in_time_and_the_record_stays(own_redis: RedisServer) -> None:
    async def work(store: RedisStateStore) -> Any:
        ctx = await saved(store, "r", a=1)
        own_redis.command("CONFIG", "SET", "proto-max-bulk-len", "1mb")
        ctx.checkpoint("b", "x" * 3_000_000)
        started = time.monotonic()
        with pytest.raises(StateStoreError, match=r"\(run 'r'\) failed.*proto-max-bulk-len"):
            await store.save("r", ctx)
        waited = time.monotonic() - started
        ctx.checkpoint("b", "elsewhere")
        await store.save("r", ctx)
        return waited, await store.load("r")

    waited, stored = with_redis(own_redis.url, work, timeout=2)

    assert waited < 3
    assert stored.completed == {"a": 1, "b": "elsewhere"}


def test_a_replica_is_told_from_a_primary(own_redis: RedisServer) -> None:
    own_redis.command("REPLICAOF", "127.0.0.1", free_port())

    assert "it is a replica, which cannot write: name the primary" in refused(own_redis.url)
    with pytest.raises(ReadOnlyStoreError, match="name the primary"):  # although it has no runs
        with_redis(own_redis.url, claimed)


def test_a_password_is_wanted_checked_and_never_shown(redis_server: RedisServer) -> None:
    at = f"127.0.0.1:{redis_server.port}/0"

    none = refused(f"redis://{at}")
    wrong = refused(f"redis://:wr0ng@{at}")
    ctx = with_redis(redis_server.url, lambda store: saved(store, "r", a=1), prefix="password:")

    assert "it wants a password" in none
    assert "check the user and the password in its URL" in wrong
    assert f"redis://{at}" in wrong
    assert "wr0ng" not in wrong
    assert ctx.revision == 2


def test_a_database_that_is_not_there_is_named(redis_server: RedisServer) -> None:
    assert "no database of this number" in refused(redis_server.url_of(5_000))


def test_tls_where_there_is_none_is_told(redis_server: RedisServer) -> None:
    assert "rediss" in refused(redis_server.url.replace("redis:", "rediss:"), timeout=1)


def test_where_nobody_listens_the_error_comes_in_time() -> None:
    message = refused(f"redis://:s3cret@127.0.0.1:{free_port()}/0", timeout=0.3)

    assert "(run 'r-81') failed" in message
    assert "s3cret" not in message


@pytest.mark.parametrize(
    ("setting", "value", "told"),
    [
        ("appendonly", "no", "it writes no append-only file"),
        ("appendfsync", "everysec", "a power cut takes back up to about 2 seconds"),
        ("appendfsync", "no", "a power cut takes back whatever the system has not written yet"),
        ("no-appendfsync-on-rewrite", "yes", "it does not sync while it rewrites"),
    ],
)
def test_a_server_that_may_lose_saves_is_refused_or_warned_of(
    own_redis: RedisServer, caplog: pytest.LogCaptureFixture, setting: str, value: str, told: str
) -> None:
    own_redis.command("CONFIG", "SET", setting, value)

    message = refused(own_redis.url)
    with caplog.at_level(logging.WARNING, "n00dles"):
        ctx = with_redis(f"{own_redis.url}?durability=warn", lambda store: saved(store, "r", a=1))

    assert told in message
    assert "durability=warn" in message
    assert ctx.revision == 2
    assert [told in record.getMessage() for record in caplog.records] == [True]


def test_a_server_that_evicts_runs_is_refused(own_redis: RedisServer) -> None:
    own_redis.command("CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru")

    assert "it evicts runs when its memory is full (maxmemory-policy allkeys-lru" in refused(own_redis.url)


def test_where_config_is_forbidden_the_store_says_so(own_redis: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    own_redis.command("ACL", "SETUSER", "worker", "on", ">s3cret", "~*", "+@all", "-config")
    url = f"redis://worker:s3cret@127.0.0.1:{own_redis.port}"

    message = refused(url)
    ctx = with_redis(url, lambda store: saved(store, "r", a=1), durability="warn")

    assert "CONFIG is forbidden to this user" in message
    assert "s3cret" not in message + caplog.text
    assert "CONFIG is forbidden to this user" in caplog.text
    assert ctx.revision == 2
