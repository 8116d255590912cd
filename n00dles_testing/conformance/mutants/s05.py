"""Stores that break S05: what the caller mutates is not what is stored."""

from __future__ import annotations

from typing import Any, ClassVar

from .correct import JSONFiles

__all__ = ["CachesWhatIsReadOften", "CachesWhatLoadGives", "GivesOutItsCache", "KeepsTheCallersObject"]


class KeepsTheCallersObject(JSONFiles):
    """A write-through cache that keeps the context it was given.

    What the caller completes afterwards looks saved until the process dies (langchain-ai/langgraph #8835,
    microsoft/agent-framework #7685); what another worker completed meanwhile looks lost. So it does after a fault,
    which C04 sees.
    """

    breaks: ClassVar[str | None] = "S05"
    also_breaks: ClassVar[tuple[str, ...]] = ("S08", "S09", "C04")

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.cache: dict[str, Any] = {}

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Answer from the cache, if it has the run."""
        return self.cache.get(run_id) or super().load_or_create(run_id, inputs)

    def save(self, run_id: str, context: Any) -> None:
        """Write the run, and keep the caller's own object."""
        with self.lock:
            super().save(run_id, context)
            self.cache[run_id] = context

    def delete(self, run_id: str) -> None:
        """Forget the run, in the cache too."""
        with self.lock:
            super().delete(run_id)
            self.cache.pop(run_id, None)


class GivesOutItsCache(JSONFiles):
    """A cache that copies what comes in, and hands itself out: a load is no copy (langchain-ai/langgraph #8748).

    When a save fails, the cache has it all the same, so C04 sees it as well.
    """

    breaks: ClassVar[str | None] = "S05"
    also_breaks: ClassVar[tuple[str, ...]] = ("C04",)

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.cache: dict[str, Any] = {}

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Give out the cached record itself."""
        if run_id not in self.cache:
            self.cache[run_id] = super().load_or_create(run_id, inputs)
        return self.cache[run_id]

    def save(self, run_id: str, context: Any) -> None:
        """Write the run, and cache what was written."""
        with self.lock:
            super().save(run_id, context)
            self.cache[run_id] = self.read(run_id)

    def delete(self, run_id: str) -> None:
        """Forget the run, in the cache too."""
        with self.lock:
            super().delete(run_id)
            self.cache.pop(run_id, None)


_OFTEN = 3


class CachesWhatIsReadOften(JSONFiles):
    """Gives out a copy of its own twice, and from the third load of a run on always the same object."""

    breaks: ClassVar[str | None] = "S05"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.loads: dict[str, int] = {}
        self.cache: dict[str, Any] = {}

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        """Count, and give out the cached record itself."""
        self.loads[run_id] = self.loads.get(run_id, 0) + 1
        if self.loads[run_id] < _OFTEN:
            return super().load_or_create(run_id, inputs)
        if run_id not in self.cache:
            self.cache[run_id] = super().load_or_create(run_id, inputs)
        return self.cache[run_id]

    def save(self, run_id: str, context: Any) -> None:
        """Write the run, and forget what was cached."""
        super().save(run_id, context)
        self.forget(run_id)

    def delete(self, run_id: str) -> None:
        """Remove the run, and forget what was cached."""
        with self.lock:
            super().delete(run_id)
            self.forget(run_id)

    def forget(self, run_id: str) -> None:
        """Begin to count anew."""
        self.loads.pop(run_id, None)
        self.cache.pop(run_id, None)


class CachesWhatLoadGives(JSONFiles):
    """Has a `load` with a cache of its own, which no save empties; and whoever asks gets the cached object itself."""

    breaks: ClassVar[str | None] = "S05"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.cache: dict[str, Any] = {}

    def load(self, run_id: str) -> Any:
        """Return the run, or None if it is not stored."""
        if run_id not in self.cache:
            found = self.read(run_id)
            if found is None:
                return None
            self.cache[run_id] = found
        return self.cache[run_id]

    def delete(self, run_id: str) -> None:
        """Forget the run, in the cache too."""
        with self.lock:
            super().delete(run_id)
            self.cache.pop(run_id, None)
