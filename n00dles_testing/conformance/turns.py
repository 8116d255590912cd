"""Taking turns with one lease, as several processes do at once: a procedure for each of them."""

from __future__ import annotations

import asyncio
import os
import random
import time
from typing import Any

from ..factories import call_either
from .child import still_alive
from .target import StoreTarget

__all__ = ["take_turns"]

_HOLD = 0.002
_PAUSE = 0.001
_TTL = 600.0


async def take_turns(
    target: StoreTarget, location: str | None, *, run_id: str, turns: int, seconds: float
) -> dict[str, Any]:
    """Take the lease of a run so many times, hold it for two milliseconds, and release it.

    Whoever is refused tries again, for so many `seconds` in all. Returns the `turns`, each from when the lease was
    given until it was given up, by the monotonic clock of the host, how often it was `refused`, and the last `refusal`.
    """
    instance = await target.open(location)
    store, holder = instance.raw, f"process {os.getpid()}"
    had, refused, refusal = list[tuple[float, float]](), 0, ""
    ends = time.monotonic() + seconds
    try:
        while len(had) < turns and time.monotonic() < ends:
            still_alive()
            try:
                lease = await call_either(store.acquire, run_id, holder, _TTL)
            except Exception as error:
                refused, refusal = refused + 1, f"{type(error).__name__}: {error}"
            else:
                given = time.monotonic()
                await asyncio.sleep(_HOLD)
                had.append((given, time.monotonic()))
                await call_either(store.release, lease)
            await asyncio.sleep(random.uniform(0, _PAUSE))
    finally:
        await instance.close()
    told = f"had it {len(had)} times, and was refused {refused} times"
    return {"told": told, "turns": had, "refused": refused, "refusal": refusal[:300]}
