"""Workers in processes of their own, and what they have called: `n00dles worker` as an operator starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from n00dles.context import PipelineContext
from n00dles.stores import open_store
from tests.n00dles.processes import PATIENCE, ROOT, finish

__all__ = ["FLOW", "loaded", "submitted", "until", "worker"]

FLOW = '''
import asyncio, os, signal, time
from n00dles import agent, pipeline


def note(text):
    """Write a line that no other process's can run into."""
    fd = os.open("calls", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(fd, (text + "\\n").encode())
    os.close(fd)


@agent
def first(name: str) -> str:
    note(f"{name} first")
    time.sleep(0.02)
    return "1"


@agent
async def second(name: str, first: str) -> str:
    note(f"{name} second")
    while os.path.exists("hold"):
        await asyncio.sleep(0.01)
    return first + "2"


@agent
def third(name: str, second: str) -> str:
    note(f"{name} third")
    if os.path.exists("poison"):
        if name != "poison":
            time.sleep(0.6)
            return second + "3"
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    while os.path.exists("stick"):
        time.sleep(0.01)
    return second + "3"


flow = pipeline(first >> second >> third, name="flow")
'''


def worker(folder: Path, *options: str, target: str = "flow.py:flow") -> subprocess.Popen[str]:
    """Start a worker that prints JSON lines."""
    return subprocess.Popen(
        [sys.executable, "-m", "n00dles", "worker", target, "--store", "sqlite:///runs.db", "--json", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def told(child: subprocess.Popen[str], *, code: int = 0) -> list[tuple[str, str | None]]:
    """Wait for a worker, and return what it said of which run."""
    lines = [json.loads(line) for line in finish(child, code=code).splitlines()]
    return [(line["kind"], line.get("run_id")) for line in lines]


async def submitted(folder: Path, *run_ids: str) -> None:
    """Store runs that wait, as `n00dles submit` does; each knows its id as its input `name`."""
    from n00dles import asubmit
    from n00dles.targets import load_target

    flow = load_target(f"{folder / 'flow.py'}:flow")
    store: Any = open_store(f"sqlite:///{folder}/runs.db")
    for run_id in run_ids:
        await asubmit(flow, run_id=run_id, store=store, name=run_id)
    await store.aclose()


async def loaded(folder: Path, run_id: str) -> PipelineContext:
    """Return a stored run."""
    store: Any = open_store(f"sqlite:///{folder}/runs.db")
    try:
        ctx = await store.load(run_id)
        assert isinstance(ctx, PipelineContext)
        return ctx
    finally:
        await store.aclose()


def calls(folder: Path) -> list[str]:
    """Return what was called, in order."""
    path = folder / "calls"
    return path.read_text().splitlines() if path.exists() else []


def until(is_so: Callable[[], bool], what: str) -> None:
    """Wait until something is so; that it does not become so is a failure."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, f"in {PATIENCE} s it did not come to this: {what}"
        time.sleep(0.01)
