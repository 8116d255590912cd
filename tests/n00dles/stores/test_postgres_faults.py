"""PostgreSQL servers that are away, refuse, are full or stand behind a pooler: a typed error in time, nothing lost."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import Any

import psycopg
import pytest

from n00dles import CorruptCheckpointError, PostgresStateStore, StateStoreError
from n00dles.stores import open_store, postgres_records
from n00dles.stores.postgres_records import run_hash
from tests.n00dles.stores.pooler import TransactionPooler
from tests.n00dles.stores.postgres_server import Postgres
from tests.n00dles.stores.redis_server import free_port
from tests.n00dles.stores.test_claims import claimed, ids
from tests.n00dles.stores.test_claims import put as put_run
from tests.n00dles.stores.test_postgres import put, with_store


@pytest.fixture
def schema() -> str:
    return uuid.uuid4().hex


def table(schema: str, name: str) -> str:
    return f'"{schema}".{name}'


def test_where_nobody_listens_the_error_comes_in_time() -> None:
    url, started = f"postgresql://u:s3cret@127.0.0.1:{free_port()}/d?timeout=0.3", time.monotonic()

    with pytest.raises(StateStoreError, match=r"u@127\.0\.0\.1.*\(run 'r-81'\).*check that the server runs") as caught:
        with_store(url, lambda store: store.load_or_create("r-81", {}))

    assert time.monotonic() - started < 1.3
    assert "s3cret" not in str(caught.value)


def test_rights_that_are_taken_away_are_told_and_nothing_is_lost(postgres: Postgres, schema: str) -> None:
    role = f"weak_{schema[:8]}"
    postgres.execute(f"CREATE ROLE {role} LOGIN PASSWORD 's3cret'")
    postgres.execute(f'CREATE SCHEMA "{schema}" AUTHORIZATION {role}')
    url = postgres.url(schema).replace(f"postgres:{postgres.server.password}@", f"{role}:s3cret@")

    async def work(store: PostgresStateStore) -> Any:
        ctx = await store.load_or_create("r", {})
        postgres.execute(f"REVOKE INSERT ON {table(schema, 'saves')} FROM {role}")
        with pytest.raises(StateStoreError, match=rf"{role}@.*\(run 'r'\).*42501.*grant the rights: .*INSERT"):
            await put(store, ctx, "a", 1)
        before = await store.load("r")
        postgres.execute(f"GRANT INSERT ON {table(schema, 'saves')} TO {role}")
        await store.save("r", ctx)
        return before, await store.load("r")

    before, after = with_store(url, work)

    assert (before.completed, after.completed, after.revision) == ({}, {"a": 1}, 2)


def test_the_rights_that_the_docs_name_are_enough(postgres: Postgres, schema: str) -> None:
    role = f"worker_{schema[:8]}"
    with_store(postgres.url(schema), lambda store: store.load("r"))
    postgres.execute(f"CREATE ROLE {role} LOGIN PASSWORD 's3cret'")
    postgres.execute(f'GRANT USAGE ON SCHEMA "{schema}" TO {role}')
    postgres.execute(f'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "{schema}" TO {role}')

    async def work(store: PostgresStateStore) -> Any:
        ctx = await store.load_or_create("r", {})
        ctx.pipeline = "flow"
        await put(store, ctx, "a", 1)
        (claim,) = await store.claim(["flow"], "A", 60)
        await store.renew(claim.lease, 60)
        await store.release(claim.lease)
        listed = [run.run_id for run in await store.list_runs()]
        pruned = await store.prune(older_than=0)
        await store.delete("r")
        return listed, pruned, await store.load("r")

    url = postgres.url(schema).replace(f"postgres:{postgres.server.password}@", f"{role}:s3cret@")
    assert with_store(url, work) == (["r"], [], None)


# What a full disk makes the server say. A small file system is not to be had without root, so a trigger says it.
FULL = """
CREATE FUNCTION {s}.full() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON {s}.saves FOR EACH ROW EXECUTE FUNCTION {s}.full();
"""


def test_what_a_full_disk_makes_the_server_say_is_told_and_nothing_is_lost(postgres: Postgres, schema: str) -> None:
    async def work(store: PostgresStateStore) -> Any:
        ctx = await store.load_or_create("r", {})
        await put(store, ctx, "a", 1)
        postgres.execute(FULL.replace("{s}", f'"{schema}"'))
        with pytest.raises(StateStoreError, match=r"\(run 'r'\).*No space left.*53100.*disk is full: make room"):
            await put(store, ctx, "b", 2)
        with pytest.raises(StateStoreError, match=r"'new'.*53100"):
            await store.load_or_create("new", {})
        before = await store.load("r"), await store.load("new")
        await store.delete("other")  # which needs no room
        postgres.execute(f"DROP TRIGGER full_disk ON {table(schema, 'saves')}")
        await store.save("r", ctx)
        return before, await store.load("r")

    (before, new), after = with_store(postgres.url(schema), work)

    assert (before.completed, new) == ({"a": 1}, None)
    assert after.completed == {"a": 1, "b": 2}


def test_tables_that_are_gone_are_told_and_not_made_anew(postgres: Postgres, schema: str) -> None:
    async def work(store: PostgresStateStore) -> None:
        ctx = await store.load_or_create("r", {})
        postgres.execute(f'DROP SCHEMA "{schema}" CASCADE')
        with pytest.raises(StateStoreError, match=r"\(run 'r'\).*gone: restore"):
            await put(store, ctx, "a", 1)
        assert not isinstance(await store_error(store.load("r")), CorruptCheckpointError)

    async def store_error(call: Any) -> StateStoreError:
        with pytest.raises(StateStoreError, match="gone: restore") as caught:
            await call
        return caught.value

    with_store(postgres.url(schema), work)


def test_outputs_that_are_too_large_are_refused_with_their_size(
    postgres: Postgres, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(store: PostgresStateStore) -> Any:
        ctx = await store.load_or_create("r", {})
        await put(store, ctx, "a", 1)
        monkeypatch.setattr(postgres_records, "_LARGEST", 1_000)
        with pytest.raises(StateStoreError, match=r"run 'r' was not saved.* have 2,0.. bytes.* at most 1,000"):
            await put(store, ctx, "b", "x" * 2_000)
        await put(store, ctx, "b", "elsewhere")
        return await store.load("r")

    assert with_store(postgres.url(schema), work).completed == {"a": 1, "b": "elsewhere"}


def test_it_works_behind_a_transaction_pooler_that_keeps_nothing_in_a_session(postgres: Postgres, schema: str) -> None:
    async def work(store: Any) -> Any:
        async def one(run_id: str) -> Any:
            ctx = await store.load_or_create(run_id, {})
            for number in range(10):
                await put(store, ctx, f"n{number}", number)
            return (await store.load(run_id)).order

        orders = await asyncio.gather(*(one(f"r{number}") for number in range(3)))
        lease = await store.acquire("r0", "A", 60)
        await store.renew(lease, 60)
        await store.release(lease)
        await put_run(store, "w")
        found = ids(await claimed(store))
        await store.delete("r0")
        runs = await store.list_runs()
        return orders, found, [run.run_id for run in runs]

    with TransactionPooler(postgres.server._socket, "n00dles") as pooler:
        url = f"postgresql://postgres@127.0.0.1:{pooler.port}/n00dles?schema={schema}&pool_size=3"
        orders, found, runs = with_store(url, work)
        lent = pooler.lent

    assert orders == [[f"n{number}" for number in range(10)]] * 3
    assert (found, set(runs)) == (["w"], {"r1", "r2", "w"})
    assert min(lent) > 10  # no session had all of it


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_whatever_isolation_is_the_default_it_works(postgres: Postgres, schema: str, level: str) -> None:
    async def work(store: Any) -> Any:
        ctx = await store.load_or_create("r", {})
        ctx.pipeline = "flow"
        await put(store, ctx, "a", 1)
        found = ids(await claimed(store))
        await store.load_or_create("gone", {})
        await store.delete("gone")
        ctx.status = "finished"
        await store.save("r", ctx)
        return found, await store.load("r"), await store.prune(older_than=-60), await store.list_runs()

    options = "-cdefault_transaction_isolation=" + level.replace(" ", "%5C%20")
    found, back, pruned, left = with_store(f"{postgres.url(schema)}&options={options}", work)

    assert (found, back.order, pruned, left) == (["r"], ["a"], ["r"], [])


@pytest.mark.parametrize("options", ["", "&options=-cdefault_transaction_isolation=repeatable%5C%20read"])
def test_a_delete_waits_for_a_save_that_is_under_way_and_leaves_nothing_of_it(
    postgres: Postgres, schema: str, options: str
) -> None:
    async def work(store: PostgresStateStore) -> Any:
        ctx = await store.load_or_create("r", {})
        await store.acquire("r", "A", 60)
        save_id = ctx.handle.stored.save_id.encode()
        async with await psycopg.AsyncConnection.connect(postgres.server.url) as other:
            save = f"SELECT \"{schema}\".append_save(%s, 1, %s, 'theirs', 0, '', '')"
            row = await (await other.execute(save.encode(), (run_hash("r"), save_id))).fetchone()
            call = asyncio.create_task(store.delete("r"))
            while not postgres.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
                await asyncio.sleep(0.01)
        await call
        return row

    row = with_store(postgres.url(schema) + options, work)

    assert row == (True,)
    for name in ("runs", "saves", "leases"):
        assert postgres.execute(f"SELECT count(*) FROM {table(schema, name)}") == [(0,)]


def test_a_prune_leaves_a_run_that_is_being_saved_at_that_moment(postgres: Postgres, schema: str) -> None:
    async def work(store: PostgresStateStore) -> Any:
        ctx = await store.load_or_create("r", {})
        ctx.status, ctx.updated_at = "finished", 0.0
        await store.save("r", ctx)
        postgres.execute(f"UPDATE {table(schema, 'runs')} SET changed_at = 0")
        postgres.execute(f"UPDATE {table(schema, 'saves')} SET saved_at = 0")
        save_id = ctx.handle.stored.save_id.encode()
        async with await psycopg.AsyncConnection.connect(postgres.server.url) as other:
            save = f"SELECT \"{schema}\".append_save(%s, 2, %s, 'theirs', %s, '', '')"
            await other.execute(save.encode(), (run_hash("r"), save_id, time.time()))
            call = asyncio.create_task(store.prune(older_than=3600))
            while not postgres.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
                await asyncio.sleep(0.01)
        return await call

    pruned = with_store(postgres.url(schema), work)

    assert pruned == []
    assert postgres.execute(f"SELECT count(*) FROM {table(schema, 'saves')}") == [(3,)]


def test_a_schema_is_migrated_once_however_many_processes_find_it_old(
    postgres: Postgres, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_store(postgres.url(schema), lambda store: store.load_or_create("r", {"x": 1}))
    newer = ("", "CREATE TABLE {s}.added (id int); INSERT INTO {s}.added VALUES (1);")
    monkeypatch.setattr("n00dles.stores.postgres_schema._MIGRATIONS", newer)
    monkeypatch.setattr("n00dles.stores.postgres_schema.SCHEMA_VERSION", 2)

    async def main() -> list[Any]:
        stores: list[Any] = [open_store(postgres.url(schema)) for _ in range(6)]
        found = await asyncio.gather(*(store.load("r") for store in stores))
        for store in stores:
            await store.aclose()
        return found

    assert [ctx.inputs for ctx in asyncio.run(main())] == [{"x": 1}] * 6
    assert postgres.execute(f"SELECT count(*) FROM {table(schema, 'added')}") == [(1,)]
