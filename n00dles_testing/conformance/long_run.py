"""A run longer than a page of any database's answers: 1000 rows, or entries, are the most that many give at once."""

from __future__ import annotations

import time

from .scenario import Handle, Scenario

__all__ = ["LONG", "save_a_long_run"]

LONG = 1_100
"""How many nodes it has: more than a page, and more than a batch."""
_A_SAVE = 220
_PART_OF_A_CALL = 0.5


async def save_a_long_run(s: Scenario, handle: Handle, text: str = "") -> int:
    """Save `LONG` nodes in a few saves, each output with `text` in it; return how many there are then.

    A store that takes very long gets fewer, which is noted.
    """
    ends = time.monotonic() + s.subject.call_seconds * _PART_OF_A_CALL
    saved = 0
    while saved < LONG:
        numbers = range(saved, min(LONG, saved + _A_SAVE))
        await s.save(handle, {f"node{number}": [number, text] for number in numbers})
        saved = numbers.stop
        if saved < LONG and time.monotonic() > ends:
            s.subject.notes.append(f"a long run was tried with {saved} nodes, not {LONG}: its saves take long")
            break
    return saved
