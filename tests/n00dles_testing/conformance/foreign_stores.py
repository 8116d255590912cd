"""Stores with methods of their own that happen to have the names of our capabilities; none of them is a fault."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from n00dles_testing.conformance.mutants.correct import JSONFiles


class OtherSignatures(JSONFiles):
    def load(self, run_id: str, version: int) -> Any: ...

    def list_runs(self, prefix: str) -> list[str]:
        return []

    def prune(self, days: int) -> int:
        return 0

    def acquire(self, key: str) -> bool:
        return True

    def renew(self) -> None: ...

    def release(self) -> None: ...


class OtherResults(JSONFiles):
    """Takes the arguments, and answers in its own way."""

    claims = property(lambda self: {"sub": "somebody"})
    reader = None

    def load(self, run_id: str) -> Any:
        return [run_id]

    def list_runs(self, **filters: Any) -> list[str]:
        return [path.stem for path in self.folder.glob("*.json")]

    def prune(self, **options: Any) -> int:
        raise TypeError("days must be a number")

    async def acquire(self, run_id: str, holder: str, ttl: float) -> bool:
        return False

    def renew(self, lease: Any, ttl: float) -> None: ...

    def release(self, lease: Any) -> None: ...


class UnknownRunsAreAnError(JSONFiles):
    async def load(self, run_id: str) -> Any:
        found = self.read(run_id)
        if found is None:
            raise KeyError(run_id)
        return found


class DiesInLoad(JSONFiles):
    claims = {"capabilities": ["load"]}  # noqa: RUF012 - a plain attribute, as an author writes it

    def load(self, run_id: str) -> Any:
        os._exit(3)


class HangsInLoad(JSONFiles):
    async def load(self, run_id: str) -> Any:
        await asyncio.Event().wait()


class Elsewhere(JSONFiles):
    """Opens the same place whatever it is asked for: somebody's own runs may be there."""

    claims = {"capabilities": ["prune"]}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__(os.environ["FOREIGN_STORE_FOLDER"])

    def prune(self, *, older_than: float) -> list[str]:
        raise AssertionError("called where the runs are not the suite's")
