"""LangGraph, sync: a StateGraph with its SqliteSaver, durability="sync".

Resumed as its documentation says (https://docs.langchain.com/oss/python/langgraph/durable-execution): the graph is
invoked with `None` and the same thread id. "sync" is the mode whose changes are persisted before the next step starts;
`langgraph_async` has the default.
"""

# Its packages are installed elsewhere, so all of it is of any type here.
# mypy: disable-error-code="import-not-found,misc,untyped-decorator,no-any-return"

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from conformance.executors import nodes
from n00dles_testing import PlainFunctions

PACKAGES = ("langgraph", "langgraph-checkpoint-sqlite")

CONFIG: Any = {"configurable": {"thread_id": "run"}}


class State(TypedDict, total=False):
    topic: str
    outline: list[str]
    facts: list[str]
    images: list[str]
    article: dict[str, object]
    address: str
    archive: str


def graph(saver: SqliteSaver) -> Any:
    """Build the graph. A node may not have the name of a key of the state, hence `make-`."""
    builder = StateGraph(State)
    builder.add_node("make-outline", lambda state: {"outline": nodes.outline(state["topic"])})
    builder.add_node("make-facts", lambda state: {"facts": nodes.facts(state["outline"])})
    builder.add_node("make-images", lambda state: {"images": nodes.images(state["outline"])})
    builder.add_node("make-article", lambda state: {"article": nodes.article(state["facts"], state["images"])})
    builder.add_node("make-online", lambda state: {"address": nodes.online(state["article"])})
    builder.add_node("make-printed", lambda state: {"address": nodes.printed(state["article"])})
    builder.add_node("make-archive", lambda state: {"archive": nodes.archive(state["address"])})
    builder.add_edge(START, "make-outline")
    builder.add_edge("make-outline", "make-facts")
    builder.add_edge("make-outline", "make-images")
    builder.add_edge(["make-facts", "make-images"], "make-article")
    builder.add_conditional_edges(
        "make-article", lambda state: f"make-{state['article']['kind']}", ["make-online", "make-printed"]
    )
    builder.add_edge("make-online", "make-archive")
    builder.add_edge("make-printed", "make-archive")
    builder.add_edge("make-archive", END)
    return builder.compile(checkpointer=saver)


def run(topic: str, folder: Path, durability: Any = "sync") -> str:
    """Invoke the graph, or go on with it."""
    with SqliteSaver.from_conn_string(f"{folder}/checkpoints.sqlite") as saver:
        # Whether the run has begun, not what `get_state` says is next: that is nothing, though the run is not finished,
        # while the writes of a step are stored and its checkpoint is not.
        given = None if saver.get_tuple(CONFIG) is not None else {"topic": topic}
        return str(graph(saver).invoke(given, CONFIG, durability=durability)["archive"])


def stored(folder: Path) -> list[str]:
    """Return what the newest checkpoint has, and what was written since by nodes of its step."""
    file = folder / "checkpoints.sqlite"
    if not file.exists():
        return []
    with SqliteSaver.from_conn_string(str(file)) as saver:
        found = saver.get_tuple(CONFIG)
    if found is None:
        return []
    channels = {*found.checkpoint["channel_values"], *(channel for _, channel, _ in found.pending_writes or ())}
    return [name for name in ("outline", "facts", "images", "article", "archive") if name in channels] + (
        ["online"] if "address" in channels else []
    )


subject = PlainFunctions(
    run, nodes.ALL, needs=nodes.FAN_OUT, routes=nodes.ROUTES, stored=stored, name="LangGraph, sync"
)
