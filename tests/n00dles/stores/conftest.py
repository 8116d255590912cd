"""A factory of fresh stores, for each kind of ours."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from n00dles import InMemoryStateStore, SQLiteStateStore
from n00dles.stores import open_store
from n00dles_testing.servers import why_not_postgres, why_not_valkey
from tests.n00dles.stores.each import Factory
from tests.n00dles.stores.postgres_server import Postgres
from tests.n00dles.stores.redis_server import RedisServer

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    pytest.importorskip("psycopg")
    if reason := why_not_postgres():
        pytest.skip(f"NOT RUN: {reason}")
    postgres = Postgres()
    yield postgres
    postgres.server.stop()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A server that syncs each write, for tests that leave it as it is."""
    yield from _started()


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """A server that syncs each write, for one test alone."""
    yield from _started()


def _started() -> Iterator[RedisServer]:
    pytest.importorskip("redis")
    if reason := why_not_valkey():
        pytest.skip(f"NOT RUN: {reason}")
    with RedisServer() as server:
        yield server


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "make_store" in metafunc.fixturenames:
        # Where a test turns the clock, it is not that of a server; and a server claims all runs in one step.
        is_local = {"clock", "claims_run_by_run"} & set(metafunc.fixturenames)
        shared = [] if is_local else ["postgres", "redis"]
        metafunc.parametrize("make_store", ["memory", "sqlite", *shared], indirect=True)


@pytest.fixture
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Factory:
    if request.param == "memory":
        return InMemoryStateStore
    if request.param == "postgres":
        postgres, name = request.getfixturevalue("postgres"), uuid.uuid4().hex
        return lambda: open_store(postgres.url(f"{name}-{next(_numbers)}"))
    if request.param == "redis":
        redis = request.getfixturevalue("redis_server")
        return lambda: open_store(f"{redis.url}?prefix={next(_numbers)}:")
    return lambda: SQLiteStateStore(tmp_path / f"{next(_numbers)}.db")
