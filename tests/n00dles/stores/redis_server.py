"""A Valkey server, and what is in it, apart from any store."""

from __future__ import annotations

import socket
from typing import Any

from n00dles_testing.servers import ValkeyServer

__all__ = ["RedisServer", "free_port"]


class RedisServer(ValkeyServer):
    """A server that can be asked anything."""

    def command(self, *arguments: Any) -> Any:
        """Return what a command returns."""
        import redis

        with redis.Redis.from_url(self.url, protocol=2) as client:
            return client.execute_command(*arguments)

    def keys(self, prefix: str) -> list[bytes]:
        """Return the keys that hold this prefix."""
        return sorted(key for key in self.command("KEYS", "*") if prefix.encode() in key)


def free_port() -> int:
    """Return a port at which nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
