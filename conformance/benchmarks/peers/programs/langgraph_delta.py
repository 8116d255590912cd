"""LangGraph, delta channel: as the one above, but the list of the state is a DeltaChannel.

The state has all outputs. A checkpoint has what is new, and each hundredth has all of it. Its documentation calls it a
beta.
"""

# Its packages are installed elsewhere, so all of it is of any type here.
# mypy: disable-error-code="import-not-found,misc,untyped-decorator,no-any-return"

from __future__ import annotations

import runpy
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.channels import DeltaChannel

PACKAGES = ("langgraph", "langgraph-checkpoint-sqlite")
DURABILITY = "sets WAL itself, and leaves synchronous at FULL"

Base: Any = runpy.run_path(str(Path(__file__).with_name("langgraph_sqlite.py")))["Program"]


def extended(outputs: list[str], writes: list[list[str]]) -> list[str]:
    return [*outputs, *chain.from_iterable(writes)]


class State(TypedDict):
    outputs: Annotated[list[str], DeltaChannel(extended)]


class Program(Base):
    state = State
