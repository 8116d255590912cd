"""n00dles: this project, on its SQLite store, as `run` does without any setting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from n00dles import Agent, Pipeline, SQLiteStateStore, resume, run
from n00dles.wiring import wire

PACKAGES = ()
IS_OURS = True
DURABILITY = "write-ahead log, synchronous=FULL"


class Program:
    def __init__(self, folder: Path, output: Callable[[int], str]) -> None:
        self.output = output
        self.store = SQLiteStateStore(folder / "n00dles.sqlite")

    def build(self, nodes: int) -> Pipeline:
        pipeline = Pipeline([self._numbered(number) for number in range(nodes)])
        # A pipeline's first run makes both, once, as others compile a graph.
        pipeline.signature()
        wire(pipeline)
        return pipeline

    def _numbered(self, number: int) -> Agent:
        async def node(text: str) -> str:
            return self.output(number)

        node.__name__ = f"n{number}"
        return Agent(node)

    def run(self, pipeline: Pipeline, run_id: str) -> None:
        run(pipeline, run_id=run_id, store=self.store, text="x")

    def resume(self, pipeline: Pipeline, run_id: str) -> None:
        resume(pipeline, run_id, store=self.store)

    def kept(self, run_id: str) -> int:
        context = asyncio.run(self.store.load(run_id))
        return 0 if context is None else len(set(context.completed.values()))

    def close(self) -> None:
        asyncio.run(self.store.aclose())
