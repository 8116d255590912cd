"""A run that has failed cannot be resumed: the snapshot of the node says "error", and only "created" is taken.

Run it twice in an empty folder, with pydantic-graph 1: the first time its second node fails, and it kills itself.
"""

# Its packages are installed elsewhere.
# mypy: ignore-errors

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from pydantic_graph import BaseNode, End, Graph, GraphRunContext
from pydantic_graph.exceptions import GraphRuntimeError
from pydantic_graph.persistence.file import FileStatePersistence


@dataclass
class First(BaseNode[None, None, str]):
    async def run(self, ctx: GraphRunContext) -> Second:
        print("First was called")
        return Second()


@dataclass
class Second(BaseNode[None, None, str]):
    async def run(self, ctx: GraphRunContext) -> End[str]:
        raise LookupError("the model refuses")


async def main():
    graph = Graph(nodes=[First, Second])
    persistence = FileStatePersistence(Path("run.json"))
    persistence.set_graph_types(graph)
    if not await persistence.load_all():
        await graph.initialize(First(), persistence=persistence)
    async with graph.iter_from_persistence(persistence) as run:
        while not isinstance(await run.next(), End):
            pass


try:
    asyncio.run(main())
except LookupError:
    os.kill(os.getpid(), 9)
except GraphRuntimeError as error:
    print("second life, called nothing:", error)
    print("CONFIRMED - the run is stuck at Second, though what made it fail is mended")
