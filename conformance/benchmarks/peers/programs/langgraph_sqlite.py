"""LangGraph: a StateGraph of N nodes with its SqliteSaver, durability="sync".

As its documentation says: a run is resumed by invoking the graph with `None` and the same thread id; "sync" is the mode
whose checkpoint is stored before the next step starts. The state is a list with a reducer, and has all outputs.
"""

# Its packages are installed elsewhere, so all of it is of any type here.
# mypy: disable-error-code="import-not-found,misc,untyped-decorator,no-any-return"

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

PACKAGES = ("langgraph", "langgraph-checkpoint-sqlite")
DURABILITY = "sets WAL itself, and leaves synchronous at FULL"


class State(TypedDict):
    outputs: Annotated[list[str], operator.add]


class Program:
    state: Any = State

    def __init__(self, folder: Path, output: Callable[[int], str]) -> None:
        self.output = output
        self.stack = ExitStack()
        self.saver = self.stack.enter_context(SqliteSaver.from_conn_string(f"{folder}/checkpoints.sqlite"))
        self.saver.setup()
        self.graph: Any = None

    def build(self, nodes: int) -> Any:
        builder = StateGraph(self.state)
        names = [f"n{number}" for number in range(nodes)]
        for number, name in enumerate(names):
            builder.add_node(name, lambda state, number=number: {"outputs": [self.output(number)]})
        for before, after in pairwise([START, *names, END]):
            builder.add_edge(before, after)
        self.graph = builder.compile(checkpointer=self.saver)
        return self.graph.with_config(recursion_limit=nodes + 10)

    def run(self, graph: Any, run_id: str) -> None:
        graph.invoke({"outputs": []}, self._config(run_id), durability="sync")

    def resume(self, graph: Any, run_id: str) -> None:
        graph.invoke(None, self._config(run_id), durability="sync")

    def _config(self, run_id: str) -> Any:
        return {"configurable": {"thread_id": run_id}}

    def kept(self, run_id: str) -> int:
        return len(set(self.graph.get_state(self._config(run_id)).values["outputs"]))

    def close(self) -> None:
        self.stack.close()
