"""Stores that lose of a run what no clause asks for: all of its bookkeeping, or a part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from docs.examples.my_store import JSONFileStore
from n00dles.context import PipelineContext


class LosesAllBookkeeping(JSONFileStore):
    """Keeps the four fields and its revision, and gives a context that looks whole."""

    lost: ClassVar[tuple[str, ...]] = (
        "nodes",
        "lives",
        "stalled",
        "status",
        "error",
        "signature",
        "elapsed_ms",
        "pipeline",
    )

    def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> PipelineContext:
        record = super().load_or_create(run_id, inputs).to_dict()
        return PipelineContext.from_dict({name: part for name, part in record.items() if name not in self.lost})


class LosesWhatNodesCost(LosesAllBookkeeping):
    """Keeps all but the records of the nodes."""

    lost: ClassVar[tuple[str, ...]] = ("nodes",)
