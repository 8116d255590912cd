"""LangGraph's RedisSaver: checkpoints in Redis.

Used as its README shows (https://pypi.org/project/langgraph-checkpoint-redis/), by `RedisSaver.from_conn_string` and
`setup()`. That makes search indexes over JSON documents, so it needs Redis 8, or the modules RedisJSON and RediSearch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .langgraph import GAPS as OF_ALL
from .langgraph import SaverStore

PACKAGES = ("langgraph-checkpoint-redis", "langgraph-checkpoint", "langgraph")
SERVER = "valkey"
NOT_RUN = "it needs Redis 8, or the modules RedisJSON and RediSearch, and the server that the check starts is Valkey"
GAPS = OF_ALL


@contextmanager
def open_store(location: str) -> Iterator[SaverStore]:
    """Open the saver on the server that the location names."""
    from langgraph.checkpoint.redis import RedisSaver

    with RedisSaver.from_conn_string(location) as saver:
        saver.setup()
        yield SaverStore(saver)
