"""A store that breaks W05: what was acknowledged is there when its server was killed and started again."""

from __future__ import annotations

from typing import ClassVar

from n00dles.stores.redis import RedisStateStore

__all__ = ["ServerThatWritesNothing"]


class ServerThatWritesNothing(RedisStateStore):
    """Runs with the append-only file switched off, for speed: the server acknowledges what it has in memory only.

    Whoever kills the clients of such a server finds everything.
    """

    breaks: ClassVar[str | None] = "W05"
    server: ClassVar[str | None] = "valkey"

    def __init__(self, url: str) -> None:
        from redis import Redis

        super().__init__(url, durability="warn", timeout=3)
        with Redis.from_url(url) as client:
            client.config_set("appendonly", "no")
