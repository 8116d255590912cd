"""Two clients of one store object that load and save a run, in every order of their awaits: for the clause W02."""

from __future__ import annotations

import time

from n00dles.stores.adapt import as_store

from ..histories.schedules import every_schedule
from .recorded import expect_no_violation
from .subject import StoreSubject

__all__ = ["in_every_order"]

_ORDERS = 100
"""A store that awaits once in each call has 70."""
_PART_OF_A_CALL = 0.5


async def in_every_order(subject: StoreSubject, *, revisions: bool) -> None:
    """Try them all, a run each, and judge each history; of a slow store as many as its time allows, which is noted."""
    async with subject.scenario("two clients load and save one run, in every order of their awaits") as s:
        store = as_store((await s.opened()).raw)
        folder, ends = subject.fresh_folder("schedules"), time.monotonic() + subject.call_seconds * _PART_OF_A_CALL
        number = 0
        async for history in every_schedule(store, folder, most=_ORDERS, revisions=revisions):
            number += 1
            s.tell(f"order {number}: {len(history.calls)} calls")
            expect_no_violation(s, history)
            if number == _ORDERS or time.monotonic() > ends:
                subject.notes.append(f"{number} orders of two clients were tried, and there are more")
                break
