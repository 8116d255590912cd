"""What is special of the Redis store: its keys, its atomic step, and connections that belong to loops and processes."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from n00dles import CorruptCheckpointError, PipelineContext, StaleContextError, StateStoreError
from n00dles.stores import open_store
from n00dles.stores import redis as redis_store
from n00dles.stores.redis import RedisStateStore
from n00dles.stores.redis_records import RunKeys
from n00dles.stores.redis_session import Connections
from tests.n00dles.stores.redis_server import RedisServer

T = TypeVar("T")


def with_redis(url: str, work: Callable[[RedisStateStore], Coroutine[Any, Any, T]], **options: Any) -> T:
    async def main() -> T:
        store = RedisStateStore(url, **options)
        try:
            return await work(store)
        finally:
            await store.aclose()

    return asyncio.run(main())


async def saved(store: RedisStateStore, run_id: str, **outputs: Any) -> PipelineContext:
    ctx = await store.load_or_create(run_id, {"topic": run_id})
    for node, output in outputs.items():
        ctx.checkpoint(node, output)
        await store.save(run_id, ctx)
    return ctx


def test_all_keys_of_a_run_share_a_hash_tag_and_a_deleted_run_leaves_none(redis_server: RedisServer) -> None:
    async def work(store: RedisStateStore) -> Any:
        ctx = await saved(store, "r", a=1)
        ctx.status = "finished"
        await store.save("r", ctx)
        await store.acquire("r", "A", 60)
        there = redis_server.keys("tags:")
        await store.delete("r")
        return there, redis_server.keys("tags:")

    there, left = with_redis(redis_server.url, work, prefix="tags:")

    assert len(there) == 3  # the run, its lease, and one index
    assert len({re.match(rb"\{tags:[0-9a-f]{2}\}:", key)[0] for key in there}) == 1  # type: ignore[index]
    assert left == []


def test_the_server_holds_the_json_text_byte_for_byte(redis_server: RedisServer) -> None:
    output = {"big": 10**40, "small": -0.0, "odd": 2**53 + 1, "text": "a\0\N{PILE OF POO}"}

    with_redis(redis_server.url, lambda store: saved(store, "r", a=output), prefix="bytes:")

    stored = redis_server.command("HGET", RunKeys("bytes:", "r").run, "0")
    assert stored.endswith(b"\n" + json.dumps(output, ensure_ascii=False, separators=(",", ":")).encode())


def test_stores_of_two_prefixes_keep_apart(redis_server: RedisServer) -> None:
    async def work(store: RedisStateStore) -> Any:
        other = open_store(f"{redis_server.url}?prefix=two:")
        assert isinstance(other, RedisStateStore)
        await saved(store, "r", a=1)
        found = await other.load("r"), await other.list_runs()
        await other.delete("r")
        await other.aclose()
        return store.place == other.place, found, await store.load("r")

    same_place, found, kept = with_redis(redis_server.url, work, prefix="one:")

    assert (same_place, found) == (False, (None, []))
    assert kept.completed == {"a": 1}


def test_a_server_is_reached_by_its_socket(redis_server: RedisServer) -> None:
    url = redis_server.socket_url.replace("db=0", "db=1")

    ctx = with_redis(url, lambda store: saved(store, "r", a=1))
    elsewhere = with_redis(redis_server.url, lambda store: store.load("r"))

    assert ctx.revision == 2
    assert elsewhere is None  # that is database 0
    assert redis_server.password not in repr(RedisStateStore(url))


DAMAGE: dict[str, Callable[[RedisServer, str], Any]] = {
    "a flipped bit of the head": lambda s, key: _flip(s, key, "head"),
    "a flipped bit of an output": lambda s, key: _flip(s, key, "1"),
    "a flipped bit of the inputs": lambda s, key: _flip(s, key, "inputs"),
    "no head": lambda s, key: s.command("HDEL", key, "head"),
    "an output that is missing": lambda s, key: s.command("HDEL", key, "0"),
    "an output too many": lambda s, key: s.command("HSET", key, "2", "x"),
    "outputs that changed places": lambda s, key: s.command("HSET", key, "0", s.command("HGET", key, "1")),
    "another id": lambda s, key: s.command("HSET", key, "id", "other"),
    "an empty head": lambda s, key: s.command("HSET", key, "head", ""),
    "no record, as after an eviction": lambda s, key: s.command("DEL", key),
    "another type": lambda s, key: (s.command("DEL", key), s.command("SET", key, "x")),
}


def _flip(server: RedisServer, key: str, field: str) -> None:
    value = bytearray(server.command("HGET", key, field))
    value[-3] ^= 1
    server.command("HSET", key, field, bytes(value))


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_run_is_an_error_and_stays_as_it_is(redis_server: RedisServer, damage: str) -> None:
    prefix = f"damage {list(DAMAGE).index(damage)}:"
    key = RunKeys(prefix, "r").run

    async def work(store: RedisStateStore) -> Any:
        await saved(store, "r", a="one", b="two")
        DAMAGE[damage](redis_server, key)
        before = redis_server.command("DUMP", key)
        for call in (store.load, lambda run_id: store.load_or_create(run_id, {"new": 1})):
            with pytest.raises(CorruptCheckpointError, match=r"damaged") as caught:
                await call("r")
            assert caught.value.run_id == "r"
        return before == redis_server.command("DUMP", key)

    assert with_redis(redis_server.url, work, prefix=prefix)


@pytest.fixture
def lost_replies(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let so many answers to saves get lost as the list has items, after the server has done what was asked."""
    from redis.exceptions import ConnectionError as LostError

    left: list[int] = []
    run = Connections.run

    async def losing(self: Connections, script: Any, keys: list[str], *arguments: Any) -> Any:
        answer = await run(self, script, keys, *arguments)
        if left:
            left.pop()
            raise LostError("the answer was lost")
        return answer

    monkeypatch.setattr(Connections, "run", losing)
    return left


@pytest.mark.parametrize("lost", [1, 3])
def test_a_save_whose_answer_is_lost_is_found_and_not_done_twice(
    redis_server: RedisServer, lost_replies: list[int], lost: int
) -> None:
    async def work(store: RedisStateStore) -> Any:
        ctx = await saved(store, "r", a=1)
        ctx.checkpoint("b", 2)
        lost_replies.extend([0] * lost)
        await store.save("r", ctx)
        return ctx, await store.load("r")

    ctx, stored = with_redis(redis_server.url, work, prefix=f"lost {lost}:")

    assert lost_replies == []
    assert (ctx.revision, ctx.unsaved, stored.revision, stored.order) == (3, (), 3, ["a", "b"])


def test_a_save_that_failed_and_had_landed_is_recognised_by_the_next(
    redis_server: RedisServer, lost_replies: list[int]
) -> None:
    async def work(store: RedisStateStore) -> Any:
        ctx = await saved(store, "r", a=1)
        ctx.checkpoint("b", 2)
        lost_replies.extend([0] * 100)
        with pytest.raises(StateStoreError, match="the answer was lost"):
            await store.save("r", ctx)
        lost_replies.clear()
        ctx.checkpoint("c", 3)
        await store.save("r", ctx)
        return ctx, await store.load("r")

    ctx, stored = with_redis(redis_server.url, work, prefix="landed:", timeout=0.3)

    assert (ctx.revision, stored.revision, stored.order) == (4, 4, ["a", "b", "c"])


def test_a_creation_whose_answer_is_lost_is_ones_own(redis_server: RedisServer, lost_replies: list[int]) -> None:
    async def work(store: RedisStateStore) -> Any:
        lost_replies.append(0)
        lost_replies.append(0)  # the first is that of the look whether it is there
        ctx = await store.load_or_create("r", {"x": 1})
        return ctx, await store.load("r")

    ctx, stored = with_redis(redis_server.url, work, prefix="created:")

    assert lost_replies == []
    assert (ctx.is_new, ctx.revision, ctx.incarnation) == (True, 1, stored.incarnation)


def test_anothers_save_is_not_taken_for_the_one_whose_answer_was_lost(
    redis_server: RedisServer, lost_replies: list[int]
) -> None:
    async def work(store: RedisStateStore) -> Any:
        ctx = await saved(store, "r", a=1)
        other = await store.load("r")
        assert other is not None
        other.checkpoint("b", "other")
        await store.save("r", other)
        ctx.checkpoint("b", "mine")
        lost_replies.append(0)
        with pytest.raises(StaleContextError):
            await store.save("r", ctx)
        return await store.load("r")

    assert with_redis(redis_server.url, work, prefix="another:").completed == {"a": 1, "b": "other"}


def test_a_loop_that_ends_closes_its_connections(redis_server: RedisServer) -> None:
    store = RedisStateStore(redis_server.url, prefix="loops:")
    before = redis_server.command("CLIENT", "LIST").count(b"\n")

    for number in range(5):
        asyncio.run(saved(store, f"r{number}", a=1))

    assert redis_server.command("CLIENT", "LIST").count(b"\n") <= before
    assert len(asyncio.run(store.list_runs())) == 5


def test_a_forked_child_and_its_parent_go_on_with_connections_of_their_own(redis_server: RedisServer) -> None:
    async def work(store: RedisStateStore) -> Any:
        ctx = await saved(store, "parent", a=1)
        child = os.fork()
        if child == 0:
            asyncio._set_running_loop(None)
            found = asyncio.run(saved(store, "child", a=1))
            os._exit(0 if found.revision == 2 else 1)
        _, status = os.waitpid(child, 0)
        ctx.checkpoint("b", 2)
        await store.save("parent", ctx)
        return os.waitstatus_to_exitcode(status), await store.load("child"), await store.load("parent")

    code, child, parent = with_redis(redis_server.url, work, prefix="forks:", max_connections=1)

    assert (code, child.order, parent.order) == (0, ["a"], ["a", "b"])


def test_one_connection_is_enough_for_many_calls_at_once(redis_server: RedisServer) -> None:
    async def work(store: RedisStateStore) -> Any:
        before = redis_server.command("CLIENT", "LIST").count(b"\n")
        await asyncio.gather(*(saved(store, f"r{number}", a=number) for number in range(20)))
        connections = redis_server.command("CLIENT", "LIST").count(b"\n") - before
        found = await asyncio.gather(*(store.load(f"r{number}") for number in range(20)))
        return connections, [dict(ctx.completed) for ctx in found if ctx is not None]

    connections, outputs = with_redis(redis_server.url, work, prefix="pool:", max_connections=1)

    assert connections == 1
    assert outputs == [{"a": number} for number in range(20)]


def test_a_prune_leaves_a_run_that_was_saved_after_it_looked(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = redis_store._described

    async def work(store: RedisStateStore) -> Any:
        for run_id in ("touched", "old"):
            ctx = await saved(store, run_id, a=1)
            ctx.status = "finished"
            await store.save(run_id, ctx)

        async def described_and_touched(*arguments: Any) -> Any:
            found = await described(*arguments)
            monkeypatch.undo()
            ctx = await store.load("touched")
            assert ctx is not None
            ctx.checkpoint("b", 2)
            await store.save("touched", ctx)
            return found

        monkeypatch.setattr(redis_store, "_described", described_and_touched)
        return await store.prune(older_than=-60), await store.load("touched"), await store.load("old")

    removed, touched, old = with_redis(redis_server.url, work, prefix="prune:")

    assert (removed, old) == (["old"], None)
    assert touched.completed == {"a": 1, "b": 2}
