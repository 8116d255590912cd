"""pydantic-graph: a Graph of nodes with its FileStatePersistence.

Used as its documentation shows (https://ai.pydantic.dev/graph/#state-persistence): `initialize`, then
`iter_from_persistence` in each process, until the end. Release 2 has no persistence any more, so the newest release 1
is tried. Its nodes run one after the other.
"""

# Release 1 is installed elsewhere; here it may be release 2, which has another Graph.
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_graph import BaseNode, End, Graph, GraphRunContext
from pydantic_graph.persistence import EndSnapshot
from pydantic_graph.persistence.file import FileStatePersistence

from conformance.executors import nodes
from n00dles_testing import PlainFunctions

PACKAGES = ("pydantic-graph<2",)


@dataclass
class Work:
    topic: str
    outline: list[str] | None = None
    facts: list[str] | None = None
    images: list[str] | None = None
    article: dict[str, Any] | None = None
    online: str | None = None
    printed: str | None = None
    archive: str | None = None


Context = GraphRunContext[Work, None]


@dataclass
class Outline(BaseNode[Work, None, str]):
    async def run(self, ctx: Context) -> Facts:
        ctx.state.outline = nodes.outline(ctx.state.topic)
        return Facts()


@dataclass
class Facts(BaseNode[Work, None, str]):
    async def run(self, ctx: Context) -> Images:
        ctx.state.facts = nodes.facts(ctx.state.outline or [])
        return Images()


@dataclass
class Images(BaseNode[Work, None, str]):
    async def run(self, ctx: Context) -> Article:
        ctx.state.images = nodes.images(ctx.state.outline or [])
        return Article()


@dataclass
class Article(BaseNode[Work, None, str]):
    async def run(self, ctx: Context) -> Online | Printed:
        text = nodes.article(ctx.state.facts or [], ctx.state.images or [])
        ctx.state.article = text
        return Online() if text["kind"] == "online" else Printed()


@dataclass
class Online(BaseNode[Work, None, str]):
    async def run(self, ctx: Context) -> Archive:
        ctx.state.online = nodes.online(ctx.state.article or {})
        return Archive()


@dataclass
class Printed(BaseNode[Work, None, str]):
    async def run(self, ctx: Context) -> Archive:
        ctx.state.printed = nodes.printed(ctx.state.article or {})
        return Archive()


@dataclass
class Archive(BaseNode[Work, None, str]):
    async def run(self, ctx: Context) -> End[str]:
        ctx.state.archive = nodes.archive(ctx.state.online or ctx.state.printed or "")
        return End(ctx.state.archive)


graph = Graph(nodes=[Outline, Facts, Images, Article, Online, Printed, Archive])


def persistence_in(folder: Path) -> FileStatePersistence[Work, str]:
    """Return the persistence of a run."""
    persistence: FileStatePersistence[Work, str] = FileStatePersistence(folder / "run.json")
    persistence.set_graph_types(graph)
    return persistence


async def run(topic: str, folder: Path) -> str:
    """Begin the run, or go on with it."""
    persistence = persistence_in(folder)
    snapshots = await persistence.load_all()
    if snapshots and isinstance(snapshots[-1], EndSnapshot):
        return snapshots[-1].result.data  # it is finished
    if not snapshots:
        await graph.initialize(Outline(), persistence=persistence, state=Work(topic))
    async with graph.iter_from_persistence(persistence) as going:
        while not isinstance(node := await going.next(), End):
            pass
    return node.data


def stored(folder: Path) -> list[str]:
    """Return what the state of the newest snapshot has."""
    if not (folder / "run.json").exists():
        return []
    snapshots = persistence_in(folder)._load_sync()
    if not snapshots:
        return []
    return [name for name in nodes.CHAIN if getattr(snapshots[-1].state, name) is not None]


subject = PlainFunctions(run, nodes.ALL, needs=nodes.CHAIN, routes=nodes.ROUTES, stored=stored, name="pydantic-graph")
