"""The stores that are tortured: where they are, and how their server, if they have one, is killed and comes back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from n00dles_testing.servers import PostgresServer, Server, ValkeyServer, why_not_postgres, why_not_valkey

__all__ = ["PLACES", "Place", "why_not"]


class Place(ABC):
    """One store, for one torture; a context manager."""

    url: str
    server: Server | None = None

    @abstractmethod
    def __init__(self, folder: Path) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.server is not None:
            self.server.stop()


class _SQLite(Place):
    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder / 'runs.db'}"


class _Postgres(Place):
    def __init__(self, folder: Path) -> None:
        self.server = PostgresServer().start()
        self.url = self.server.url


class _Redis(Place):
    def __init__(self, folder: Path) -> None:
        self.server = ValkeyServer().start()
        self.url = self.server.url


PLACES: dict[str, type[Place]] = {"sqlite": _SQLite, "postgres": _Postgres, "redis": _Redis}

_REASONS: dict[str, Callable[[], str | None]] = {"postgres": why_not_postgres, "redis": why_not_valkey}


def why_not(name: str) -> str | None:
    """Return why a store cannot be tortured here, as a sentence; None if it can."""
    return _REASONS[name]() if name in _REASONS else None
