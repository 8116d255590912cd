"""Burr: an application of one action a node, with its SQLitePersister.

As its documentation shows: `initialize_from` the persister with `resume_at_next_action`, and `with_state_persister`.
Each node writes a key of its own, so the state has all outputs, and each step saves the whole state.
"""

# Its packages are installed elsewhere, so all of it is of any type here.
# mypy: disable-error-code="import-not-found,misc,untyped-decorator,no-any-return"

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from burr.core import ApplicationBuilder, State, action
from burr.core.graph import GraphBuilder
from burr.core.persistence import SQLitePersister

PACKAGES = ("apache-burr",)
PUT_INTO_WAL = ("burr.sqlite",)
DURABILITY = "sets nothing; its file was put into WAL beforehand, so FULL is as durable as the raw limit"


class Program:
    def __init__(self, folder: Path, output: Callable[[int], str]) -> None:
        self.output = output
        self.persister = SQLitePersister.from_values(f"{folder}/burr.sqlite")
        self.persister.initialize()

    def build(self, nodes: int) -> Any:
        names = [f"n{number}" for number in range(nodes)]
        actions = {name: self._numbered(number) for number, name in enumerate(names)}
        return GraphBuilder().with_actions(**actions).with_transitions(*pairwise(names)).build()

    def _numbered(self, number: int) -> Any:
        @action(reads=[], writes=[f"n{number}"])
        def node(state: State) -> State:
            return state.update(**{f"n{number}": self.output(number)})

        return node

    def run(self, graph: Any, run_id: str) -> None:
        application = (
            ApplicationBuilder()
            .with_graph(graph)
            .with_identifiers(app_id=run_id)
            .initialize_from(self.persister, resume_at_next_action=True, default_state={}, default_entrypoint="n0")
            .with_state_persister(self.persister)
            .build()
        )
        application.run(halt_after=[graph.actions[-1].name])

    resume = run

    def kept(self, run_id: str) -> int:
        state = self.persister.load(None, run_id)["state"]
        return len({text for key, text in state.get_all().items() if key.startswith("n")})

    def close(self) -> None:
        self.persister.cleanup()
