"""LangGraph, async: a StateGraph with its SqliteSaver, durability="async", which is the default.

As `langgraph_sqlite`, but that changes are persisted while the next step executes. The documentation says so, and that
a process which dies may not have written them.
"""

from __future__ import annotations

from functools import partial

from conformance.executors import nodes
from conformance.executors.langgraph_sqlite import run, stored
from n00dles_testing import PlainFunctions

PACKAGES = ("langgraph", "langgraph-checkpoint-sqlite")

subject = PlainFunctions(
    partial(run, durability="async"),
    nodes.ALL,
    needs=nodes.FAN_OUT,
    routes=nodes.ROUTES,
    stored=stored,
    name="LangGraph, async",
)
