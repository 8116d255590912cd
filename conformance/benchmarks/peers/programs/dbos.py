"""DBOS: a workflow that calls one step a node, on its SQLite system database.

As its guide shows: the workflow has an id, `DBOS.launch()` recovers what was pending, and the result is asked for by
that id. The time of a resume has the launch in it.
"""

# Its packages are installed elsewhere, so all of it is of any type here.
# mypy: disable-error-code="import-not-found,misc,untyped-decorator,no-any-return"

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dbos import DBOS, SetWorkflowID

PACKAGES = ("dbos",)
PUT_INTO_WAL = ("dbos.sqlite",)
DURABILITY = "sets nothing; its file was put into WAL beforehand, so FULL is as durable as the raw limit"

bodies: list[Callable[[int], str]] = []
"""What the step calls: steps and workflows are registered when the module is imported, before anything is launched."""


@DBOS.step()
def node(number: int) -> str:
    return bodies[-1](number)


@DBOS.workflow()
def chain(nodes: int) -> str:
    text = ""
    for number in range(nodes):
        text = node(number)
    return text


class Program:
    def __init__(self, folder: Path, output: Callable[[int], str]) -> None:
        bodies.append(output)
        self.url = f"sqlite:///{folder}/dbos.sqlite"
        self.is_launched = False

    def build(self, nodes: int) -> int:
        return nodes

    def _launch(self) -> None:
        if not self.is_launched:
            DBOS(config={"name": "measured", "system_database_url": self.url, "run_admin_server": False})
            DBOS.launch()
            self.is_launched = True

    def run(self, nodes: int, run_id: str) -> None:
        self._launch()
        with SetWorkflowID(run_id):
            chain(nodes)

    def resume(self, nodes: int, run_id: str) -> None:
        self._launch()
        handle: Any = DBOS.retrieve_workflow(run_id)
        handle.get_result(polling_interval_sec=0.01)

    def kept(self, run_id: str) -> int:
        return len({step["output"] for step in DBOS.list_workflow_steps(run_id)})

    def close(self) -> None:
        DBOS.destroy()
