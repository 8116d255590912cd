"""DBOS: a workflow of steps on its SQLite system database.

Used as its guide shows (https://docs.dbos.dev/python/programming-guide): the workflow has an id, `DBOS.launch()`
recovers what was pending, and the result is asked for by that id.
"""

# Its packages are installed elsewhere, so all of it is of any type here.
# mypy: disable-error-code="import-not-found,misc,untyped-decorator,no-any-return"

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from dbos import DBOS, SetWorkflowID

from conformance.executors import nodes
from n00dles_testing import PlainFunctions

PACKAGES = ("dbos",)
GAPS = {"E10": "a workflow that failed is final; it can be forked from a step, as a workflow of another id"}


def step(function: Any) -> Any:
    """Return a step that calls a function in a thread, so that two may run side by side."""

    async def called(*args: Any) -> Any:
        return await asyncio.to_thread(function, *args)

    return DBOS.step(name=function.__name__)(called)


outline, facts, images, article, online, printed, archive = map(step, nodes.ALL)


@DBOS.workflow()
async def produce(topic: str) -> Any:
    points = await outline(topic)
    found, pictures = await asyncio.gather(facts(points), images(points))
    text = await article(found, pictures)
    address = await (online if text["kind"] == "online" else printed)(text)
    return await archive(address)


def run(topic: str, folder: Path) -> str:
    """Start the workflow, or wait for the one that was recovered."""
    database = f"sqlite:///{folder}/dbos.sqlite"
    DBOS(config={"name": "field-trial", "system_database_url": database, "run_admin_server": False})
    DBOS.launch()
    try:
        return str(asyncio.run(_result(topic)))
    finally:
        DBOS.destroy()


async def _result(topic: str) -> Any:
    if await DBOS.get_workflow_status_async("run") is None:
        with SetWorkflowID("run"):
            handle = await DBOS.start_workflow_async(produce, topic)
    else:
        handle = await DBOS.retrieve_workflow_async("run")
    return await handle.get_result()


def stored(folder: Path) -> list[str]:
    """Return the steps that have an output in the system database."""
    file = folder / "dbos.sqlite"
    if not file.exists():
        return []
    with closing(sqlite3.connect(file)) as connection:
        known = "SELECT 1 FROM sqlite_master WHERE name = 'operation_outputs'"
        if connection.execute(known).fetchone() is None:
            return []
        rows = connection.execute("SELECT function_name FROM operation_outputs WHERE error IS NULL").fetchall()
    return [name for (name,) in rows if name in nodes.FAN_OUT]


subject = PlainFunctions(run, nodes.ALL, needs=nodes.FAN_OUT, routes=nodes.ROUTES, stored=stored, name="DBOS")
