"""llama-index-workflows: a workflow of one step in a loop, which writes each output into a table of its own.

Its documentation leaves the keeping to the author: a client of a database is kept in the workflow instance. On a resume
the loop is gone through again, and each step takes its output from the table if it is there.
"""

# Its packages are installed elsewhere, so all of it is of any type here.
# mypy: disable-error-code="import-not-found,misc,untyped-decorator,no-any-return"

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

from workflows import Workflow, step
from workflows.events import Event, StartEvent, StopEvent

PACKAGES = ("llama-index-workflows",)
DURABILITY = "keeps nothing itself; the table is in a file of ours, with WAL and synchronous=FULL"


class Next(Event):
    number: int


class Chain(Workflow):
    def __init__(self, nodes: int, output: Callable[[int], str], connection: sqlite3.Connection, run_id: str) -> None:
        super().__init__(timeout=None)
        self.nodes, self.output, self.connection, self.run_id = nodes, output, connection, run_id
        rows = connection.execute("SELECT node, output FROM journal WHERE run = ?", (run_id,)).fetchall()
        self.known = {node: json.loads(text) for node, text in rows}

    @step
    async def begin(self, event: StartEvent) -> Next:
        return Next(number=0)

    @step
    async def node(self, event: Next) -> Next | StopEvent:
        text = self.known.get(event.number)
        if text is None:
            text = self.output(event.number)
            row = (self.run_id, event.number, json.dumps(text))
            self.connection.execute("INSERT INTO journal VALUES (?, ?, ?)", row)
        after = event.number + 1
        return Next(number=after) if after < self.nodes else StopEvent(result=text)


class Program:
    def __init__(self, folder: Path, output: Callable[[int], str]) -> None:
        self.output = output
        self.connection = sqlite3.connect(folder / "journal.sqlite", isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        columns = "run TEXT, node INTEGER, output TEXT, PRIMARY KEY (run, node)"
        self.connection.execute(f"CREATE TABLE IF NOT EXISTS journal ({columns}) WITHOUT ROWID")

    def build(self, nodes: int) -> int:
        return nodes

    def run(self, nodes: int, run_id: str) -> None:
        asyncio.run(self._run(nodes, run_id))

    async def _run(self, nodes: int, run_id: str) -> None:
        await Chain(nodes, self.output, self.connection, run_id).run()

    resume = run

    def kept(self, run_id: str) -> int:
        query = "SELECT count(DISTINCT output) FROM journal WHERE run = ?"
        return int(self.connection.execute(query, (run_id,)).fetchone()[0])

    def close(self) -> None:
        self.connection.close()
