"""The published suite on stores of this project, a test for each clause: `pytest conformance/test_backends.py`.

These are its backends that need no server, and the store that the documentation shows; those on PostgreSQL and Valkey,
which take some minutes more, are in `served_backends.py`. What a store claims here is what the documentation
says of it.
"""

from __future__ import annotations

from typing import ClassVar

from docs.examples.my_store import JSONFileStore
from n00dles import InMemoryStateStore, SQLiteStateStore
from n00dles_testing import StateStoreConformance


class TestMemory(StateStoreConformance):
    claims: ClassVar = {"level": 1, "capabilities": ["load", "list_runs", "prune", "leases"]}

    def open_store(self) -> InMemoryStateStore:
        return InMemoryStateStore()


class TestSQLite(StateStoreConformance):
    claims: ClassVar = {"level": 2, "capabilities": ["durable", "shared", "load", "list_runs", "prune", "leases"]}

    def open_store(self, location: str) -> SQLiteStateStore:
        return SQLiteStateStore(f"{location}/runs.db")


class TestStoreOfTheDocumentation(StateStoreConformance):
    claims: ClassVar = {"capabilities": ["durable", "shared"]}

    def open_store(self, location: str) -> JSONFileStore:
        return JSONFileStore(location)
