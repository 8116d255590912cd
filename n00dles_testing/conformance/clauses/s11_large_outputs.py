"""S11: large outputs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from ..expect import BrokenClause, MisuseError
from ..refusals import save_or_refusal, text_of
from ..registry import clause
from ..scenario import Scenario, describe
from ..sizes import names_size_and_limit
from ..subject import StoreSubject

_NODE = "researcher"
_KB, _MB = 1024, 1024 * 1024
_SIZES = (("100 KB", 100 * _KB), ("1 MB", _MB), ("16 MB", 16 * _MB), ("64 MB", 64 * _MB))
_NEEDED = 16 * _MB
"""The largest size without which the clause has shown too little."""
_PART = 1024
_COPIES = 12
"""A store and a check hold so many copies of an output at once, as objects and as texts."""


@clause("S11", level=1, title="large outputs come back equal, or are refused naming size and limit")
async def large_outputs(subject: StoreSubject) -> None:
    """Outputs of 100 KB, 1, 16 and 64 MB come back equal, also after a reopen, or are refused, naming size and limit.

    Each is one text of random characters, which nothing compresses; one of 1 MB is a list of a thousand parts as well.
    It is saved into a run that has an output already: when it is refused, the run stays as it was, and takes a small
    output afterwards. A limit is no fault (databases have one for a document, a row or a message), but it is met late
    in a long run, and whoever reads the error has to know how far he is above it. What can be read of the size is taken
    as it stands, in bytes, KB or MB.

    Where there is not enough memory free for 64 MB and its copies, that size is left out, and the report says so; where
    there is not enough for 16 MB, the clause is NOT RUN.

    Seen in: aaronsu11/langgraph-checkpoint-dynamodb #3 and aaronsu11/langgraph-checkpoint-dynamodb #8 (a state above
    400 KB makes the write fail, late in a long run).
    """
    for title, size in _SIZES:
        if not _has_memory(subject, title, size):
            continue
        await _one_output(subject, f"one text of {title}", _text(subject, size), size)
    await _one_output(subject, "1 MB in 1024 parts", [_text(subject, _PART) for _ in range(_MB // _PART)], _MB)


async def _one_output(subject: StoreSubject, title: str, output: Any, size: int) -> None:
    async with subject.scenario(f"an output: {title}") as s:
        handle = await s.create()
        await s.save(handle, {"before": "kept"})

        refusal = await save_or_refusal(s, handle, {_NODE: output})

        if refusal is not None:
            await _stays_and_goes_on(s, handle.run_id)
            _expect_size_and_limit(refusal, handle.run_id, size)
            subject.notes.append(f"refused, naming size and limit: {title}")
            return
        await s.expect_acknowledged(handle.run_id, because="the save was acknowledged")
        await _is_there_after_a_reopen(s, handle.run_id)


async def _stays_and_goes_on(s: Scenario, run_id: str) -> None:
    handle = await s.expect_acknowledged(run_id, because="the save was refused, so the run stays as it was")
    await s.save(handle, {"writer": "a short text"})
    await s.expect_acknowledged(run_id, because="what was refused is no part of the run, and a small output fits")


async def _is_there_after_a_reopen(s: Scenario, run_id: str) -> None:
    await s.reopen()
    came = (await s.load(run_id)).record
    if "before" not in came.completed:
        note = "not read after a reopen: what is small is not found there either (see C01)"
        s.subject.notes.extend([note] if note not in s.subject.notes else [])
        return
    s.expect(came).equals(s.acknowledged[run_id], because="the save was acknowledged before the store was closed")


def _expect_size_and_limit(refusal: Exception, run_id: str, size: int) -> None:
    if names_size_and_limit(text_of(refusal).replace(run_id, ""), size):
        return
    raise BrokenClause(
        "the refusal does not name the size and the limit",
        (
            ("allowed", f"an error that names about {size} bytes (or KB, MB), and the limit"),
            ("came", describe(refusal)),
            ("why", "whoever reads it has to know by how much the output is too large"),
        ),
    )


def _text(subject: StoreSubject, size: int) -> str:
    return random.Random(subject.draw.token()).randbytes(size // 2).hex()


def _has_memory(subject: StoreSubject, title: str, size: int) -> bool:
    """Whether the memory is enough for an output and its copies; one that is left out is noted.

    What is free changes from one minute to the next, and a verdict must not: so only too little for a size that every
    machine has room for is an error.
    """
    free = _free_memory()
    if free is None or free >= size * _COPIES:
        return True
    why = (
        f"{title} was not tried: {free // _MB} MB of memory are free, and an output of that size with its copies "
        f"may take {size * _COPIES // _MB} MB"
    )
    if size <= _NEEDED:
        raise MisuseError(f"{why}. Run the check where there is more")
    subject.notes.append(why)
    return False


def _free_memory() -> int | None:
    """Return how many bytes can be had, or None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * _KB for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return None
