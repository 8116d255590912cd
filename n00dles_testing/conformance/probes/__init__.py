"""Finding out what a store offers beyond its three methods: by calling it as n00dles would, never by its looks.

One file a capability. A method that is there and only raises `NotImplementedError` is not offered; one that takes other
arguments, or gives what n00dles could not use, is told as that, and is no fault of a store that claims nothing.
"""

from __future__ import annotations

from ..capabilities import CAPABILITIES, Outcome
from ..subject import StoreSubject
from .durable import durable
from .leases import leases
from .list_runs import list_runs
from .load import load
from .offered import Denied
from .prune import prune
from .shared import shared

__all__ = ["find_out"]

_PROBES = {"durable": durable, "shared": shared, "load": load, "list_runs": list_runs, "prune": prune, "leases": leases}
assert list(_PROBES) == list(CAPABILITIES)


async def find_out(name: str, subject: StoreSubject) -> tuple[Outcome, str]:
    """Probe the capability `name`; return what was seen, and the proof in a sentence."""
    try:
        return Outcome.FOUND, await _PROBES[name](subject)
    except Denied as denied:
        return denied.outcome, str(denied)
