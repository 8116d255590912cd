"""CrewAI: a Flow of N methods with `@persist` on the class, and its SQLiteFlowPersistence.

As its documentation shows: a flow is resumed by `kickoff` with the id of its state. That runs its methods again, from
the first one on, so each looks into the state whether its output is there. The state is a list of all outputs.
"""

# Its packages are installed elsewhere, so all of it is of any type here.
# mypy: disable-error-code="import-not-found,misc,untyped-decorator,no-any-return"

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from crewai.flow.flow import Flow, FlowState, listen, start
from crewai.flow.persistence import SQLiteFlowPersistence, persist

PACKAGES = ("crewai",)
DURABILITY = "sets WAL itself, and leaves synchronous at FULL; it opens a connection for each save"


class State(FlowState):
    outputs: list[str] = []  # noqa: RUF012 - pydantic copies it


class Program:
    def __init__(self, folder: Path, output: Callable[[int], str]) -> None:
        self.output = output
        self.persistence = SQLiteFlowPersistence(f"{folder}/flows.sqlite")

    def build(self, nodes: int) -> Any:
        methods: dict[str, Any] = {"n0": start()(self._numbered(0))}
        for number in range(1, nodes):
            methods[f"n{number}"] = listen(f"n{number - 1}")(self._numbered(number))
        chain = type(Flow)("Chain", (Flow[State],), {"__module__": __name__, "suppress_flow_events": True, **methods})
        return persist(self.persistence)(chain)

    def _numbered(self, number: int) -> Any:
        def node(flow: Any, *before: Any) -> None:
            if len(flow.state.outputs) <= number:
                flow.state.outputs.append(self.output(number))

        node.__name__ = node.__qualname__ = f"n{number}"
        return node

    def run(self, chain: Any, run_id: str) -> None:
        chain().kickoff(inputs={"id": run_id})

    resume = run

    def kept(self, run_id: str) -> int:
        return len(set(self.persistence.load_state(run_id)["outputs"]))

    def close(self) -> None:
        pass
