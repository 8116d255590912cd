"""The PostgreSQL store on a real server: what it owes beyond what every store of ours does."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import psycopg
import pytest

from n00dles import CorruptCheckpointError, PipelineContext, StaleContextError, StateStoreError, StoreVersionError
from n00dles.errors import ConfigurationError, ReadOnlyStoreError, RunLockedError
from n00dles.stores import open_store
from n00dles.stores import postgres_records as records
from n00dles.stores.postgres import PostgresStateStore
from n00dles.stores.postgres_pool import Connection, cut
from n00dles.stores.postgres_records import run_hash
from tests.n00dles.stores.postgres_server import Postgres

T = TypeVar("T")


@pytest.fixture
def url(postgres: Postgres) -> str:
    return postgres.url(uuid.uuid4().hex)


def with_store(url: str, work: Callable[[PostgresStateStore], Awaitable[T]], **options: Any) -> T:
    async def main() -> T:
        store = PostgresStateStore(url, **options)
        try:
            return await work(store)
        finally:
            await store.aclose()

    return asyncio.run(main())


async def put(store: PostgresStateStore, ctx: PipelineContext, node: str, output: Any = None) -> None:
    ctx.checkpoint(node, output)
    await store.save(ctx.run_id, ctx)


def schema_of(url: str) -> str:
    return url.partition("schema=")[2]


def lose_replies(monkeypatch: pytest.MonkeyPatch, count: int) -> list[bytes]:
    """Let the connection break right after each of the next `count` statements that change a run has committed."""
    lost = list[bytes]()

    def losing(honest: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(connection: Connection, query: bytes, *arguments: Any) -> Any:
            answer = await honest(connection, query, *arguments)
            if len(lost) < count:
                lost.append(query)
                cut(connection)
                await connection.execute("SELECT 1")
            return answer

        return call

    for name in ("_is_true", "ask"):
        monkeypatch.setattr(records, name, losing(getattr(records, name)))
    return lost


def test_a_save_whose_reply_was_lost_is_recognised(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(store: PostgresStateStore) -> Any:
        ctx = await store.load_or_create("r", {})
        lost = lose_replies(monkeypatch, 1)
        await put(store, ctx, "a", 1)
        await put(store, ctx, "b", 2)
        return lost, ctx, await store.load("r")

    lost, ctx, back = with_store(url, work)

    assert len(lost) == 1
    assert (back.revision, back.order, ctx.revision) == (3, ["a", "b"], 3)


def test_a_save_that_does_not_fit_into_one_message_of_the_network_arrives_whole(url: str) -> None:
    async def work(store: PostgresStateStore) -> Any:
        ctx = await store.load_or_create("r", {})
        for node in "ab":  # the first one makes the connection
            await put(store, ctx, node, node * 8_000_000)
        return await store.load("r")

    assert with_store(url, work).completed == {node: node * 8_000_000 for node in "ab"}


def test_a_creation_whose_reply_was_lost_is_still_the_first_life(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(store: PostgresStateStore) -> Any:
        await store.load("r")
        lost = lose_replies(monkeypatch, 1)
        ctx = await store.load_or_create("r", {"x": 1})
        await put(store, ctx, "a", 1)
        return lost, ctx, await store.load("r")

    lost, ctx, back = with_store(url, work)

    assert len(lost) == 1
    assert (ctx.is_new, ctx.lives, back.revision, back.completed, back.inputs) == (True, 1, 2, {"a": 1}, {"x": 1})


def test_a_late_save_does_not_bring_a_deleted_run_back(url: str) -> None:
    async def work(store: PostgresStateStore) -> Any:
        ctx = await store.load_or_create("r", {})
        await store.delete("r")
        with pytest.raises(StaleContextError, match="deleted"):
            await put(store, ctx, "a")
        again = await store.load_or_create("r", {})
        with pytest.raises(StaleContextError, match="another run of this id"):
            await store.save("r", ctx)
        return again.order, await store.load("r")

    order, back = with_store(url, work)

    assert (order, back.order) == ([], [])


def test_a_second_worker_that_is_overtaken_is_refused(url: str) -> None:
    async def work(store: PostgresStateStore) -> Any:
        first = await store.load_or_create("r", {})
        second = await store.load("r")
        assert second is not None
        await put(store, second, "a", "second")
        with pytest.raises(StaleContextError, match="at revision 2"):
            await put(store, first, "a", "first")
        return await store.load("r")

    assert with_store(url, work).completed == {"a": "second"}


def test_many_stores_that_create_one_run_agree(url: str) -> None:
    async def main() -> list[PipelineContext]:
        stores = [PostgresStateStore(url) for _ in range(6)]
        found = await asyncio.gather(*(store.load_or_create("r", {"n": n}) for n, store in enumerate(stores)))
        for store in stores:
            await store.aclose()
        return found

    found = asyncio.run(main())

    assert len({(ctx.inputs["n"], ctx.incarnation) for ctx in found}) == 1
    assert sum(ctx.is_new for ctx in found) == 1


def test_a_pool_of_one_connection_is_enough(url: str) -> None:
    async def work(store: PostgresStateStore) -> Any:
        async def one(run_id: str) -> list[str]:
            ctx = await store.load_or_create(run_id, {})
            for node in "abc":
                await put(store, ctx, node)
            return ctx.order

        return await asyncio.gather(*(one(f"r{n}") for n in range(5)))

    assert with_store(url, work, pool_size=1) == [["a", "b", "c"]] * 5


def test_no_connection_is_in_a_transaction_between_two_calls(postgres: Postgres, url: str) -> None:
    async def work(store: PostgresStateStore) -> Any:
        await put(store, await store.load_or_create("r", {}), "a")
        return postgres.execute("SELECT DISTINCT state FROM pg_stat_activity WHERE application_name = 'n00dles'")

    assert with_store(url, work) == [("idle",)]


def test_the_same_store_works_again_after_the_server_was_killed() -> None:
    postgres = Postgres()

    async def work(store: PostgresStateStore) -> Any:
        ctx = await store.load_or_create("r", {})
        await put(store, ctx, "a", 1)
        postgres.server.kill()
        with pytest.raises(StateStoreError, match="check that the server runs"):
            await put(store, ctx, "b", 2)
        postgres.server.start()
        await store.save("r", ctx)
        return await store.load("r")

    try:
        back = with_store(postgres.url(timeout=1), work)
    finally:
        postgres.server.stop()

    assert back.completed == {"a": 1, "b": 2}


def test_a_server_that_does_not_answer_is_an_error_within_the_timeout(postgres: Postgres, url: str) -> None:
    async def work(store: PostgresStateStore) -> Any:
        ctx = await store.load_or_create("r", {})
        loop = asyncio.get_running_loop()
        postgres.server.pause()
        try:
            started = loop.time()
            with pytest.raises(StateStoreError, match=r"'r'.*timeout 1 s"):
                await put(store, ctx, "a", 1)
            waited = loop.time() - started
        finally:
            postgres.server.resume()
        await put(store, ctx, "b", 2)
        return waited, await store.load("r")

    waited, back = with_store(url, work, timeout=1)

    assert waited < 2
    assert back.completed == {"a": 1, "b": 2}


def test_a_connection_that_was_closed_by_the_server_costs_no_error(postgres: Postgres, url: str) -> None:
    async def work(store: PostgresStateStore) -> Any:
        ctx = await store.load_or_create("r", {})
        ended = postgres.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'n00dles'"
        )
        await put(store, ctx, "a", 1)
        return ended, await store.load("r")

    ended, back = with_store(url, work)

    assert (True,) in ended
    assert back.completed == {"a": 1}


def test_a_save_that_waits_for_another_ends_within_the_timeout(postgres: Postgres, url: str) -> None:
    async def work(store: PostgresStateStore) -> Any:
        ctx = await store.load_or_create("r", {})
        async with await psycopg.AsyncConnection.connect(url.partition("?")[0]) as other:
            await other.execute(f'LOCK TABLE "{schema_of(url)}".saves'.encode())
            started = asyncio.get_running_loop().time()
            with pytest.raises(StateStoreError, match="'r'"):
                await put(store, ctx, "a", 1)
            waited = asyncio.get_running_loop().time() - started
        await put(store, ctx, "b", 2)
        return waited, await store.load("r")

    waited, back = with_store(url, work, timeout=1.0)

    assert 0.5 < waited < 2.0
    assert back.completed == {"a": 1, "b": 2}


def test_a_cancelled_save_is_not_done_later_when_nothing_is_in_its_way_any_more(postgres: Postgres, url: str) -> None:
    async def work(store: PostgresStateStore) -> Any:
        ctx = await store.load_or_create("r", {})
        async with await psycopg.AsyncConnection.connect(url.partition("?")[0]) as blocker:
            await blocker.execute(f'LOCK TABLE "{schema_of(url)}".saves'.encode())
            ctx.checkpoint("a", 1)
            save = asyncio.create_task(store.save("r", ctx))
            while not postgres.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
                await asyncio.sleep(0.01)
            started = time.monotonic()
            save.cancel()
            with pytest.raises(asyncio.CancelledError):
                await save
            waited = time.monotonic() - started
            left = postgres.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        return waited, left, await store.load("r")

    waited, left, back = with_store(url, work)

    assert (left, back.completed, back.revision) == ([], {}, 1)
    assert waited < 4  # the server was asked to give up


def test_a_cancelled_save_is_done_or_not_done_and_the_next_reply_is_its_own(postgres: Postgres, url: str) -> None:
    async def work(store: PostgresStateStore) -> Any:
        ctx, other = await store.load_or_create("r", {}), await store.load_or_create("other", {"x": 1})
        async with await psycopg.AsyncConnection.connect(url.partition("?")[0]) as blocker:
            await blocker.execute(f'LOCK TABLE "{schema_of(url)}".saves'.encode())
            ctx.checkpoint("a", 1)
            save = asyncio.create_task(store.save("r", ctx))
            while not postgres.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
                await asyncio.sleep(0.01)
            save.cancel()
            with pytest.raises(asyncio.CancelledError):
                await save
        again = await store.load("other")
        await store.save("r", ctx)
        return other.incarnation, again, await store.load("r")

    incarnation, again, back = with_store(url, work, pool_size=1)

    assert (again.incarnation, again.inputs) == (incarnation, {"x": 1})
    assert (back.completed, back.revision) == ({"a": 1}, 2)


def test_it_may_be_used_in_another_loop_another_thread_and_a_forked_child(url: str) -> None:
    store = PostgresStateStore(url)

    async def one_more() -> None:
        ctx = await store.load_or_create("r", {})
        await put(store, ctx, f"n{len(ctx.order)}")

    asyncio.run(one_more())
    asyncio.run(one_more())
    thread = threading.Thread(target=lambda: asyncio.run(one_more()))
    thread.start()
    thread.join()
    child = os.fork()
    if child == 0:
        asyncio.run(one_more())
        os._exit(7)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    asyncio.run(one_more())
    back = with_store(url, lambda other: other.load("r"))
    asyncio.run(store.aclose())

    assert code == 7
    assert back is not None
    assert back.order == ["n0", "n1", "n2", "n3", "n4"]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE {s}.saves SET outputs = set_byte(outputs, 12, get_byte(outputs, 12) # 1) WHERE revision = 2",
        "UPDATE {s}.saves SET outputs = '' WHERE revision = 2",
        "DELETE FROM {s}.saves WHERE revision = 2",
        "DELETE FROM {s}.saves",
        "UPDATE {s}.saves SET revision = 10 - revision",
        "UPDATE {s}.saves SET revision = revision + 1 WHERE revision = 3",
        "UPDATE {s}.saves SET head = '' WHERE revision = 3",
        "UPDATE {s}.saves SET head = (SELECT head FROM {s}.saves WHERE revision = 2) WHERE revision = 3",
        "DELETE FROM {s}.runs",
        "UPDATE {s}.runs SET inputs = 'c0ffee00{}'",
        "UPDATE {s}.runs SET signature = inputs",
        "UPDATE {s}.runs SET status = 'finished'",
        "UPDATE {s}.runs SET run_id = 'q'",
    ],
)
def test_a_damaged_record_is_refused(postgres: Postgres, url: str, damage: str) -> None:
    async def work(store: PostgresStateStore) -> None:
        ctx = await store.load_or_create("r", {"x": 1})
        await put(store, ctx, "a", 1)
        await put(store, ctx, "b", 2)
        postgres.execute(damage.replace("{s}", f'"{schema_of(url)}"'))
        with pytest.raises(CorruptCheckpointError, match="'r'"):
            await store.load("r")
        with pytest.raises(CorruptCheckpointError, match="'r'"):
            await store.load_or_create("r", {"x": 1})

    with_store(url, work)


def test_a_schema_of_a_later_release_is_left_alone(postgres: Postgres, url: str) -> None:
    with_store(url, lambda store: store.load("r"))
    postgres.execute(f'UPDATE "{schema_of(url)}".meta SET value = 99')

    with pytest.raises(StoreVersionError, match="99"):
        with_store(url, lambda store: store.load("r"))


def test_missing_rights_are_told_with_what_to_grant(postgres: Postgres, url: str) -> None:
    postgres.execute("DROP ROLE IF EXISTS weak")
    postgres.execute("CREATE ROLE weak LOGIN PASSWORD 's3cret'")
    weak = url.replace(f"postgres:{postgres.server.password}@", "weak:s3cret@")

    with pytest.raises(StateStoreError, match=r"weak@.*42501.*grant the rights"):
        with_store(weak, lambda store: store.load("r"))


def test_a_read_only_server_is_told_with_where_to_write(url: str) -> None:
    with_store(url, lambda store: store.load("r"))
    read_only = f"{url}&options=-cdefault_transaction_read_only%3Don"

    with pytest.raises(StateStoreError, match=r"'r'.*25006.*primary"):
        with_store(read_only, lambda store: store.load_or_create("r", {}))
    with pytest.raises(ReadOnlyStoreError, match=r"25006.*primary"):  # although it has no runs
        with_store(read_only, lambda store: store.claim(["flow"], "me", 30))
    assert with_store(url, lambda store: store.load("r")) is None


def test_one_worker_at_a_time_holds_a_run(url: str) -> None:
    async def work(store: PostgresStateStore) -> Any:
        lease = await store.acquire("r", "me", 30)
        with pytest.raises(RunLockedError, match="held by me"):
            await store.acquire("r", "you", 30)
        longer = await store.renew(lease, 60)
        held = await store.list_leases(["r", "q"])
        await store.release(lease)
        await store.release(lease)
        return lease, longer, held, await store.acquire("r", "you", 30)

    lease, longer, held, other = with_store(url, work)

    assert (longer.token, held) == (lease.token, [longer])
    assert 25 < longer.expires_at - lease.expires_at < 35
    assert other.holder == "you"


def test_an_expired_lease_is_taken_over_and_then_lost(url: str) -> None:
    async def work(store: PostgresStateStore) -> Any:
        lease = await store.acquire("r", "me", 0.05)
        await asyncio.sleep(0.1)
        renewed = await store.renew(lease, 0.05)
        await asyncio.sleep(0.1)
        await store.acquire("r", "you", 30)
        with pytest.raises(RunLockedError, match="taken over by you"):
            await store.renew(renewed, 30)
        await store.release(lease)
        return await store.list_leases(["r"])

    assert [lease.holder for lease in with_store(url, work)] == ["you"]


def test_the_lease_of_a_killed_process_is_free_at_once(url: str) -> None:
    with_store(url, lambda store: store.load("r"))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        asyncio.run(PostgresStateStore(url).acquire("r", "the child", 3600))
        os.write(writing, b"!")
        signal.pause()
    os.read(reading, 1)
    with pytest.raises(RunLockedError, match="held by the child"):
        with_store(url, lambda store: store.acquire("r", "me", 30))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)

    lease = with_store(url, lambda store: store.acquire("r", "me", 30))

    assert lease.holder == "me"


def test_a_deleted_run_has_no_lease(url: str) -> None:
    async def work(store: PostgresStateStore) -> None:
        lease = await store.acquire("r", "me", 30)
        await store.delete("r")
        with pytest.raises(RunLockedError, match="was deleted"):
            await store.renew(lease, 30)

    with_store(url, work)


def test_prune_removes_old_finished_runs_whole(postgres: Postgres, url: str) -> None:
    async def work(store: PostgresStateStore) -> Any:
        for run_id, status in (("old", "finished"), ("open", "running")):
            ctx = await store.load_or_create(run_id, {})
            ctx.status = status  # type: ignore[assignment]
            await put(store, ctx, "a")
        kept = await store.prune(older_than=3600)
        return kept, await store.prune(older_than=-1), await store.list_runs()

    kept, pruned, left = with_store(url, work)

    assert (kept, pruned, [run.run_id for run in left]) == ([], ["old"], ["open"])
    assert postgres.execute(f'SELECT DISTINCT run_hash FROM "{schema_of(url)}".saves') == [(run_hash("open"),)]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:s3cret%ZZ@h/d",
        "postgresql://u:s3cret@h/d?nonsense=1",
        "postgresql://u:s3cret@h/d?timeout=soon",
        "postgresql://u:s3cret@h/d?pool_size=0",
        "postgresql://u:s3cret@h/d?schema=pg_x",
        "postgress://u:s3cret@h/d",
    ],
)
def test_a_url_that_means_nothing_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_store(url)

    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "advice"),
    [
        (":{password}@", ":s3cret@", "check user and password"),
        ("//postgres:", "//nobody:", "check user and password"),
        ("/n00dles?", "/nothing?", "create the database"),
        ("?", "?sslmode=require&", "check sslmode"),
        ("127.0.0.1", "nowhere.invalid", "check the host"),
    ],
)
def test_a_wrong_url_is_told_at_once_with_what_to_do_and_without_its_password(
    postgres: Postgres, url: str, old: str, new: str, advice: str
) -> None:
    password = postgres.server.password
    assert old.format(password=password) in url
    store = open_store(url.replace(old.format(password=password), new))

    with pytest.raises(StateStoreError, match=rf"(?s)'r'.*{advice}") as caught:
        asyncio.run(store.load_or_create("r", {}))

    told = str(caught.value) + repr(store)
    assert not any(secret in told for secret in ("s3cret", password, "tried for"))


def test_two_stores_of_one_schema_are_in_one_place() -> None:
    first, second = (
        open_store("postgresql://u:a@h/d?schema=s"),
        open_store("postgres://u:b@h:5432/d?schema=s&timeout=3"),
    )

    assert first.place == second.place != open_store("postgresql://u:a@h/d").place
