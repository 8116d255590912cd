"""llama-agents-server: a workflow of one step in a loop, run by a WorkflowServer with its SqliteWorkflowStore.

As its documentation shows: the store is given to the server, which journals what happens in each run, and goes on with
those that were under way when it is started. Requests reach it without a network. A run that was written within the
last 30 s is left alone, since another server may have it: it is resumed after that.
"""

# Its packages are installed elsewhere, so all of it is of any type here.
# mypy: disable-error-code="import-not-found,misc,untyped-decorator,no-any-return"

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from llama_agents.server import SqliteWorkflowStore, WorkflowServer
from workflows import Workflow, step
from workflows.events import Event, StartEvent, StopEvent

PACKAGES = ("llama-agents-server",)
PUT_INTO_WAL = ("workflows.sqlite",)
GRACE = 31
DURABILITY = "sets nothing; its file was put into WAL beforehand, so FULL is as durable as the raw limit"


class Begin(StartEvent):
    nodes: int


class Next(Event):
    number: int
    nodes: int
    text: str


bodies: list[Callable[[int], str]] = []


class Chain(Workflow):
    @step
    async def begin(self, event: Begin) -> Next:
        return Next(number=0, nodes=event.nodes, text="")

    @step
    async def node(self, event: Next) -> Next | StopEvent:
        text, after = bodies[-1](event.number), event.number + 1
        return Next(number=after, nodes=event.nodes, text=text) if after < event.nodes else StopEvent(result=text)


class Program:
    def __init__(self, folder: Path, output: Callable[[int], str]) -> None:
        bodies.append(output)
        self.file = folder / "workflows.sqlite"

    def build(self, nodes: int) -> int:
        return nodes

    def run(self, nodes: int, run_id: str) -> None:
        asyncio.run(self._served(self._asked_to_run, nodes, run_id))

    def resume(self, nodes: int, run_id: str) -> None:
        asyncio.run(self._served(self._ended, nodes, run_id))

    async def _served(self, act: Any, nodes: int, run_id: str) -> None:
        server = WorkflowServer(workflow_store=SqliteWorkflowStore(str(self.file)))
        server.add_workflow("chain", Chain(timeout=None))
        transport = httpx.ASGITransport(app=server.app)
        async with server.contextmanager(), httpx.AsyncClient(transport=transport, base_url="http://local") as client:
            await act(client, nodes, run_id)

    async def _asked_to_run(self, client: httpx.AsyncClient, nodes: int, run_id: str) -> None:
        body = {"handler_id": run_id, "start_event": {"nodes": nodes}}
        answer = await client.post("/workflows/chain/run", json=body, timeout=None)
        answer.raise_for_status()

    async def _ended(self, client: httpx.AsyncClient, nodes: int, run_id: str) -> None:
        while (await client.get(f"/handlers/{run_id}")).json()["status"] != "completed":
            await asyncio.sleep(0.01)

    def kept(self, run_id: str) -> int:
        query = "SELECT tick_data FROM ticks JOIN handlers USING (run_id) WHERE handler_id = ?"
        rows = sqlite3.connect(self.file).execute(query, (run_id,)).fetchall()
        return len({text for (tick,) in rows for text in re.findall(r"\d{8}x+", json.dumps(tick))})

    def close(self) -> None:
        pass
