"""Stores that break S01: what `load_or_create` gives."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from .correct import JSONFiles, merged, new_record

__all__ = ["CreatesAtTheFirstSave", "LooksBeforeItCreates", "TakesInputsOnceItHasGrown", "TakesTheInputsPassed"]


class TakesTheInputsPassed(JSONFiles):
    """An upsert: `INSERT … ON CONFLICT (run_id) DO UPDATE SET inputs = excluded.inputs`.

    The run goes on with other inputs than its completed outputs were computed from (dbos-inc/dbos-transact-ts PR #726).
    """

    breaks: ClassVar[str | None] = "S01"

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Return the known run with the inputs passed now."""
        with self.lock:
            record = super().load_or_create(run_id, inputs)
            record["inputs"] = dict(inputs)
            self.write(run_id, record)
            return record


class CreatesAtTheFirstSave(JSONFiles):
    """Writes nothing until there is an output: two workers that start one run each have inputs of their own.

    It cannot tell a run that was deleted from one that was not saved yet.
    """

    breaks: ClassVar[str | None] = "S01"
    also_breaks: ClassVar[tuple[str, ...]] = ("S07",)

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Return the stored run, or one that nobody else will ever see."""
        with self.lock:
            return self.read(run_id) or new_record(run_id, inputs)

    def save(self, run_id: str, context: Any) -> None:
        """Write the run, whether it is stored or not."""
        with self.lock:
            record = self.kept(context)
            self.write(run_id, merged(self.read(run_id) or record, record))


_LARGE = 4


class TakesInputsOnceItHasGrown(JSONFiles):
    """Moves a run to another layout once it has four outputs, and takes the inputs passed at that moment with it."""

    breaks: ClassVar[str | None] = "S01"

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Return the run; a long one with the inputs passed now."""
        with self.lock:
            record = super().load_or_create(run_id, inputs)
            if len(record["completed"]) >= _LARGE:
                record["inputs"] = dict(inputs)
                self.write(run_id, record)
            return record


class LooksBeforeItCreates(JSONFiles):
    """Looks for the run, awaits, and creates it: of two tasks that start one run each has inputs of its own."""

    breaks: ClassVar[str | None] = "S01"

    async def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Return the run that is there, or write a new one over one that has been created meanwhile."""
        found = self.read(run_id)
        if found is not None:
            return found
        await asyncio.sleep(0)
        record = new_record(run_id, inputs)
        with self.lock:
            self.write(run_id, record)
        return record
