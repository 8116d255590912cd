"""The faults of a connection that W06 tries: which, when, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ..faults import (
    Blackhole,
    CutAfterBytes,
    CutWhenIdle,
    Delay,
    Drip,
    Fault,
    LoseReply,
    LoseRequest,
    RefuseConnections,
    Stall,
)

__all__ = ["FAULTS", "ConnectionFault", "Moment"]

Moment = Literal["a save", "a load between two saves", "nothing"]

_A_WHILE = 0.4
_CALLS: tuple[Moment, ...] = ("a save", "a load between two saves")


@dataclass(frozen=True, slots=True)
class ConnectionFault:
    """A fault, and during what it is tried. The connections there are may be `cut` as it begins: it is about new ones.

    It is over so many seconds after it has begun to act, or with the call (`lasts` None): what the store needs then is
    a time limit.
    """

    title: str
    make: Callable[[], Fault]
    moments: tuple[Moment, ...] = _CALLS
    cut: bool = False
    lasts: float | None = None


FAULTS = (
    # Those for which a store has to give up by itself come first: they take longest.
    ConnectionFault("nothing comes back any more", lambda: Stall("to_client", then="rst")),
    ConnectionFault("nothing comes back until the call has given up, then all of it", lambda: Stall("to_client")),
    ConnectionFault("new connections are refused", RefuseConnections, cut=True),
    ConnectionFault("new connections get no answer", Blackhole, cut=True),
    ConnectionFault("nothing passes for 0.4 s, then all of it", Stall, lasts=_A_WHILE),
    ConnectionFault("new connections are refused for 0.4 s", RefuseConnections, cut=True, lasts=_A_WHILE),
    ConnectionFault("new connections get no answer for 0.4 s", Blackhole, cut=True, lasts=_A_WHILE),
    ConnectionFault("all data comes 50 ms late", lambda: Delay(0.05)),
    ConnectionFault("data comes in crumbs of 5 bytes", lambda: Drip(size=5, interval=0.0005)),
    ConnectionFault("the connection is cut within the request", lambda: CutAfterBytes(20)),
    ConnectionFault("the connection is cut within the reply", lambda: CutAfterBytes(3, way="to_client")),
    ConnectionFault("the request is lost", LoseRequest),
    ConnectionFault("the reply is lost", LoseReply),
    ConnectionFault("the connection is reset", lambda: CutWhenIdle(0.05), ("nothing",)),
    ConnectionFault("the connection is closed", lambda: CutWhenIdle(0.05, how="fin"), ("nothing",)),
)
