"""Many cycles of opening a store, using it and closing it, in another process, and what it holds afterwards."""

from __future__ import annotations

import asyncio
import gc
import os
import tempfile
import threading
import time
import warnings
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from .child import still_alive
from .target import StoreTarget

__all__ = ["Held", "keep_open", "open_use_and_close", "wind_down"]

_DESCRIPTORS = "/dev/fd"
_TASKS = "/proc/self/task"
_SHOWN_WARNINGS = 3
_POLL_SECONDS = 0.02
_INPUTS = {"topic": "cats"}

_kept: list[Any] = []


@dataclass(frozen=True, slots=True)
class Held:
    """What a process holds, after so many cycles. `descriptors` is None where the system does not show them.

    `open_files` counts descriptors by what they lead to, `names` are those of Python's threads. `warnings` counts the
    `ResourceWarning`s since the sample before, `warned` are some of them.
    """

    cycles: int
    descriptors: int | None
    threads: int
    open_files: dict[str, int]
    names: list[str]
    warnings: int
    warned: list[str]


async def open_use_and_close(
    target: StoreTarget,
    location: str | None,
    *,
    run_ids: list[str],
    runs_of: int,
    first: int,
    most: int,
    seconds: float,
    temporary: str,
) -> dict[str, Any]:
    """Do cycles number `first` to `first + most - 1`, or as many as `seconds` allow, at least one; return a `Held`.

    A run is gone on with for `runs_of` cycles. Temporary files go to the folder `temporary`.
    """
    os.environ["TMPDIR"] = tempfile.tempdir = temporary
    deadline = time.monotonic() + seconds
    done = first
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", ResourceWarning)
        while done < first + most and (done == first or time.monotonic() < deadline):
            await _cycle(target, location, run_ids[done // runs_of], done)
            done += 1
        gc.collect()
    told = [str(each.message) for each in caught if issubclass(each.category, ResourceWarning)]
    return _held(done, told)


async def wind_down(
    target: StoreTarget, location: str | None, *, cycles: int, descriptors: int, threads: int, seconds: float
) -> dict[str, Any]:
    """Wait until no more is held than so many descriptors and threads, at most `seconds`; return a `Held`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        held = _held(cycles, [])
        if (held["descriptors"] or 0) <= descriptors and held["threads"] <= threads:
            break
        still_alive()
        await asyncio.sleep(_POLL_SECONDS)
    gc.collect()
    return _held(cycles, [])


async def keep_open(target: StoreTarget, location: str | None) -> dict[str, Any]:
    """Open the store, and leave it so."""
    _kept.append(await target.open(location))
    return {}


async def _cycle(target: StoreTarget, location: str | None, run_id: str, number: int) -> None:
    """Use every method: a run is loaded and saved, saved from an older state, and another one is made and deleted."""
    instance = await target.open(location)
    try:
        context = instance.context(await instance.load_or_create(run_id, _INPUTS), run_id)
        older = instance.context(await instance.load_or_create(run_id, _INPUTS), run_id)
        context.checkpoint(f"node{number:03}", {"text": f"of cycle {number}"})
        still_alive()
        await instance.save(run_id, context)
        still_alive()
        with suppress(Exception):  # whether it is refused or merged is for S08
            older.checkpoint(f"older{number:03}", {"text": f"of cycle {number}"})
            await instance.save(run_id, older)
        # Under one id, so that a mark of what was deleted is one.
        short = f"{run_id.rpartition('-')[0]}-short"
        still_alive()
        await instance.load_or_create(short, _INPUTS)
        await instance.delete(short)
    finally:
        still_alive()
        await instance.close()
        still_alive()


def _held(cycles: int, told: list[str]) -> dict[str, Any]:
    descriptors = _open_descriptors()
    return {
        "cycles": cycles,
        "descriptors": None if descriptors is None else len(descriptors),
        "threads": _count_of_threads(),
        "open_files": dict(Counter(descriptors or ())),
        "names": [thread.name for thread in threading.enumerate()],
        "warnings": len(told),
        "warned": told[:_SHOWN_WARNINGS],
    }


def _open_descriptors() -> list[str] | None:
    """Return what each open descriptor leads to, None where the system does not show it."""
    if not os.path.isdir(_DESCRIPTORS):
        return None
    found = []
    for name in os.listdir(_DESCRIPTORS):
        with suppress(OSError):
            found.append(os.readlink(f"{_DESCRIPTORS}/{name}").partition(":[")[0])
    return found


def _count_of_threads() -> int:
    """Count the threads of this process, also those that a C library has started."""
    try:
        return len(os.listdir(_TASKS))
    except OSError:
        return threading.active_count()
