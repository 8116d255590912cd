"""The published suite on the stores with a server, which is started from its wheel: `make backends`; takes minutes."""

from __future__ import annotations

from typing import ClassVar

from n00dles import PostgresStateStore, RedisStateStore
from n00dles_testing import StateStoreConformance


class TestPostgres(StateStoreConformance):
    server: ClassVar = "postgres"
    claims: ClassVar = {"level": 2, "capabilities": ["durable", "shared", "load", "list_runs", "prune", "leases"]}

    def open_store(self, location: str) -> PostgresStateStore:
        return PostgresStateStore(location)


class TestRedis(StateStoreConformance):
    server: ClassVar = "valkey"
    claims: ClassVar = {"level": 2, "capabilities": ["durable", "shared", "load", "list_runs", "prune", "leases"]}

    def open_store(self, location: str) -> RedisStateStore:
        return RedisStateStore(location)
