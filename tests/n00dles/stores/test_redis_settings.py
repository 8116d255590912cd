"""What the URL of a Redis store may say."""

from __future__ import annotations

import pytest

from n00dles import ConfigurationError
from n00dles.stores import open_store
from n00dles.stores.redis_durability import failover_note, weaknesses
from n00dles.stores.redis_settings import parse_url


def test_a_password_is_in_no_text_that_people_see() -> None:
    store = open_store("redis://me:s3cret@example.org/2?prefix=a:")

    assert repr(store) == "RedisStateStore('redis://me@example.org:6379/2', prefix='a:')"
    assert "s3cret" not in repr(vars(store))


def test_options_of_the_query_are_read_and_those_of_the_call_win() -> None:
    settings = parse_url("redis://h?prefix=a:&durability=warn&timeout=2.5&max_connections=3&ssl_ca_certs=x", timeout=7)

    assert (settings.prefix, settings.durability, settings.timeout, settings.max_connections) == ("a:", "warn", 7, 3)
    assert settings.url == "redis://h?ssl_ca_certs=x"


def test_stores_of_one_database_are_at_one_place_whoever_uses_them() -> None:
    places = [
        open_store(url).place for url in ("redis://a:b@h:6379/0", "rediss://h", "redis://h/1", "redis://h?prefix=x")
    ]

    assert places[0] == places[1]
    assert len(set(places)) == 3


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("redis://", "names no Redis server"),
        ("redis:///0", "names no Redis server"),
        ("redis://:s3cret@h:port/0", "cannot be read"),
        ("redis://:s3cret@h/first", "names the database 'first'"),
        ("redis://:s3cret@h?durablity=warn", "Did you mean 'durability'?"),
        ("redis://:s3cret@h?durability=maybe", "durability='maybe' means nothing"),
        ("redis://:s3cret@h?timeout=soon", "timeout='soon' in the URL of redis://h:6379/0 is no number"),
        ("redis://:s3cret@h?timeout=0", "timeout=0.0 is not a positive number"),
        ("redis://:s3cret@h?max_connections=0", "max_connections=0 is not a positive number"),
    ],
)
def test_a_url_that_means_nothing_is_refused_without_its_password(url: str, told: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_store(url)

    assert told in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_durable_server_has_no_weakness() -> None:
    durable = {"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no", "maxmemory": "100"}

    assert weaknesses({**durable, "maxmemory-policy": "noeviction"}, {}) == []
    assert weaknesses({**durable, "maxmemory-policy": "volatile-lru"}, {}) == []
    assert weaknesses({**durable, "maxmemory": "0", "maxmemory-policy": "allkeys-lru"}, {}) == []


def test_what_a_failover_can_lose_is_said_of_a_primary_with_replicas() -> None:
    assert failover_note({"role": "master", "connected_slaves": 0}) is None
    assert failover_note({"role": "slave", "connected_slaves": 1}) is None
    one, two = (str(failover_note({"role": "master", "connected_slaves": replicas})) for replicas in (1, 2))
    assert "it has 1 replica that follows asynchronously" in one
    assert "it has 2 replicas that follow asynchronously" in two
