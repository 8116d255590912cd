"""pydantic-graph: a Graph of one node class in a loop, with its FileStatePersistence.

As its documentation shows: `initialize`, then `iter_from_persistence`. Release 2 has no persistence any more, so it is
the newest release 1. The state has the newest output alone; the snapshots in the file have all of them.
"""

# Release 1 is installed elsewhere; here it may be release 2, which has another Graph.
# mypy: ignore-errors

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic_graph import BaseNode, End, Graph, GraphRunContext
from pydantic_graph.persistence.file import FileStatePersistence

PACKAGES = ("pydantic-graph<2",)
DURABILITY = "never syncs, and has no setting for it: what was saved may go with the power"

bodies: list[Callable[[int], str]] = []


@dataclass
class State:
    nodes: int
    output: str = ""


@dataclass
class Node(BaseNode[State, None, str]):
    number: int

    async def run(self, ctx: GraphRunContext[State, None]) -> Node | End[str]:
        ctx.state.output = bodies[-1](self.number)
        after = self.number + 1
        return Node(after) if after < ctx.state.nodes else End(ctx.state.output)


graph = Graph(nodes=[Node])


class Program:
    def __init__(self, folder: Path, output: Callable[[int], str]) -> None:
        bodies.append(output)
        self.folder = folder

    def build(self, nodes: int) -> int:
        return nodes

    def run(self, nodes: int, run_id: str) -> None:
        asyncio.run(self._run(run_id, nodes))

    def resume(self, nodes: int, run_id: str) -> None:
        asyncio.run(self._run(run_id, None))

    async def _run(self, run_id: str, nodes: int | None) -> None:
        persistence = self._persistence(run_id)
        if nodes is not None:
            await graph.initialize(Node(0), persistence=persistence, state=State(nodes))
        async with graph.iter_from_persistence(persistence) as going:
            while not isinstance(await going.next(), End):
                pass

    def _persistence(self, run_id: str) -> FileStatePersistence:
        persistence = FileStatePersistence(self.folder / f"{run_id}.json")
        persistence.set_graph_types(graph)
        return persistence

    def kept(self, run_id: str) -> int:
        snapshots = asyncio.run(self._persistence(run_id).load_all())
        return len({snapshot.state.output for snapshot in snapshots} - {""})

    def close(self) -> None:
        pass
