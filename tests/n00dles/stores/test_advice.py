"""What the errors of servers advise, where the server's own words do not say it."""

from __future__ import annotations

import psycopg
import pytest

from n00dles.stores.postgres_errors import store_error as postgres_error
from n00dles.stores.postgres_target import parse_target
from n00dles.stores.redis_errors import store_error as redis_error


@pytest.mark.parametrize(("shown", "told"), [("rediss://h:6379/0", True), ("redis://h:6379/0", False)])
def test_a_server_that_does_not_answer_a_tls_client_may_not_speak_tls(shown: str, told: bool) -> None:
    error = redis_error(TimeoutError("Timeout connecting to server"), shown, None, 3)

    assert ("that the server speaks TLS (else write redis://)" in str(error)) is told


def test_a_schema_of_something_else_is_told_as_that() -> None:
    target = parse_target("postgresql://h/db?schema=theirs", schema=None, pool_size=None, timeout=None)

    error = postgres_error(psycopg.errors.DuplicateTable('relation "runs" already exists'), target, None, 0)

    assert "the schema holds tables of something else: name another one in the URL (?schema=…)" in str(error)
