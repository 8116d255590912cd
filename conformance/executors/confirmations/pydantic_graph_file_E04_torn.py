"""A kill in a save leaves an empty file, and the whole run is lost: the file is written in place, not replaced.

Run it twice in an empty folder, with pydantic-graph 1: the first time it kills itself as `Path.write_bytes` has opened
the file and has not yet written. The second time the file cannot be read.
"""

# Its packages are installed elsewhere.
# mypy: ignore-errors

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import PosixPath

from pydantic import ValidationError
from pydantic_graph import BaseNode, End, Graph, GraphRunContext
from pydantic_graph.persistence.file import FileStatePersistence


class File(PosixPath):
    def write_bytes(self, data):
        with open(self, "wb") as file:
            if b"success" in data:  # the first node has ended, and that is being saved
                os.kill(os.getpid(), 9)
            return file.write(data)


@dataclass
class First(BaseNode[None, None, str]):
    async def run(self, ctx: GraphRunContext) -> Second:
        return Second()


@dataclass
class Second(BaseNode[None, None, str]):
    async def run(self, ctx: GraphRunContext) -> End[str]:
        return End("done")


async def main():
    graph = Graph(nodes=[First, Second])
    persistence = FileStatePersistence(File("run.json"))
    persistence.set_graph_types(graph)
    if not await persistence.load_all():
        await graph.initialize(First(), persistence=persistence)
    async with graph.iter_from_persistence(persistence) as run:
        while not isinstance(await run.next(), End):
            pass


try:
    if os.path.exists("run.json.pydantic-graph-persistence-lock"):
        print("the lock of the dead process is still there; removed by hand")
        os.unlink("run.json.pydantic-graph-persistence-lock")
    asyncio.run(main())
except ValidationError as error:
    print(f"run.json has {os.path.getsize('run.json')} bytes:", error.errors()[0]["msg"])
    print("CONFIRMED - the file is empty, and with it the run")
