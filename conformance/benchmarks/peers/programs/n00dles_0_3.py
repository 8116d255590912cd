"""n00dles 0.3: the published release, with its SQLiteStateStore.

Its nodes are models, so a provider stands in for them that answers with the output. Its `PipelineExecutor` resumes a
run from its last checkpoint if the store has its id.
"""

# Its packages are installed elsewhere.
# mypy: ignore-errors

from __future__ import annotations

import asyncio
import functools
import operator
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import n00dles
from n00dles.core.executor import PipelineExecutor

PACKAGES = ("get-n00dles==0.3.0",)
PUT_INTO_WAL = ("runs.sqlite",)
DURABILITY = "sets nothing; its file was put into WAL beforehand, so FULL is as durable as the raw limit"


class Model:
    """A provider that answers with the output of one node."""

    def __init__(self, answer: Callable[[], str]) -> None:
        self.answer = answer

    async def complete(self, prompt: str, system: str, **settings: Any) -> Any:
        return SimpleNamespace(content=self.answer(), input_tokens=1, output_tokens=1, latency_ms=1.0, model="measured")


class Program:
    def __init__(self, folder: Path, output: Callable[[int], str]) -> None:
        self.output = output
        self.store = n00dles.SQLiteStateStore(f"{folder}/runs.sqlite")

    def build(self, nodes: int) -> Any:
        agents = [self._numbered(number) for number in range(nodes)]
        return n00dles.pipeline(functools.reduce(operator.rshift, agents), retry=1)

    def _numbered(self, number: int) -> Any:
        def node(text: str) -> str: ...

        node.__name__, node.__doc__ = f"n{number}", f"Answer {number}."
        node.__annotations__ = {"text": str, "return": str}
        return n00dles.agent(model="measured", provider=Model(lambda: self.output(number)))(node)

    def run(self, pipeline: Any, run_id: str) -> None:
        asyncio.run(PipelineExecutor(state=self.store).execute(pipeline, run_id, {"text": "x"}))

    resume = run

    def kept(self, run_id: str) -> int:
        context = asyncio.run(self.store.load_or_create(run_id, {}))
        return len(set(context.completed.values()))

    def close(self) -> None:
        pass
