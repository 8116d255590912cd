"""The pipeline that is tortured. What its nodes and its store do is written to a call ledger, which no kill reaches.

A worker imports this module; the environment says where the ledger is, the number of the worker, which is the `life` of
its entries (a process id may be used again), and how long a node works.
"""

from __future__ import annotations

import asyncio
import os
import time

from n00dles import agent, configure, pipeline
from n00dles.events import CheckpointSaved, Event, RunFailed, RunFinished, RunStarted
from n00dles_testing.crash.ledger import LedgerWriter
from n00dles_testing.parent import die_with_parent

LEDGER = "N00DLES_TORTURE_LEDGER"
WORKER = "N00DLES_TORTURE_WORKER"
PARENT = "N00DLES_TORTURE_PARENT"
NODE_SECONDS = "N00DLES_TORTURE_NODE_SECONDS"

_ledger = LedgerWriter(os.environ.get(LEDGER, os.devnull), life=int(os.environ.get(WORKER, "0")))
_seconds = float(os.environ.get(NODE_SECONDS, "0"))


@agent
async def fetch(job: str) -> str:
    _ledger.write("call_start", run=job, node="fetch")
    await asyncio.sleep(_seconds)
    _ledger.write("call_end", run=job, node="fetch")
    return f"{job} fetched"


@agent
async def count(job: str, fetch: str) -> str:
    _ledger.write("call_start", run=job, node="count")
    await asyncio.sleep(_seconds)
    _ledger.write("call_end", run=job, node="count")
    return f"{fetch}, counted"


@agent
def check(job: str, fetch: str) -> str:
    _ledger.write("call_start", run=job, node="check")
    time.sleep(_seconds / 2)
    _ledger.write("call_end", run=job, node="check")
    return f"{fetch}, checked"


@agent
async def report(job: str, count: str, check: str) -> str:
    _ledger.write("call_start", run=job, node="report")
    await asyncio.sleep(_seconds)
    _ledger.write("call_end", run=job, node="report")
    return f"{count}; {check}; reported"


flow = pipeline(fetch >> (count | check) >> report, name="tortured")


def expected(job: str) -> dict[str, str]:
    """Return what the nodes of a run must have given."""
    return {
        "fetch": f"{job} fetched",
        "count": f"{job} fetched, counted",
        "check": f"{job} fetched, checked",
        "report": f"{job} fetched, counted; {job} fetched, checked; reported",
    }


def _note(event: Event) -> None:
    match event:
        case RunStarted():
            _ledger.write("life_start", run=event.run_id, number=event.life, completed=list(event.completed))
        case CheckpointSaved(nodes=nodes) if nodes:
            _ledger.write("saved", run=event.run_id, nodes=list(nodes))
        case RunFinished():
            _ledger.write("outcome", run=event.run_id, how="finished")
        case RunFailed():
            _ledger.write("outcome", run=event.run_id, how="failed", error=event.error)


if LEDGER in os.environ:
    die_with_parent(int(os.environ[PARENT]))
    configure(observers=[_note])
