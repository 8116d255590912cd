"""A process that traces forks of itself: without a thread or an event loop, and with no open store.

Whoever traces a process by ptrace has to be its parent, and to be one thread that waits for it. So this is another
process than the one in which the checks run: a fork of the nursery, which has imported the target, or a fresh
interpreter (`main`), which has not: then each fork of it imports the target for itself. Unlike `child.py` it does
nothing but run procedures, which are no coroutines: `procedure(target, location, **arguments)`, where `target()`
returns the target, in a fork only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from ..channel import Channel
from ..parent import die_with_parent, expect_children
from .child import CALLED, procedure_named, speak_over
from .expect import BrokenClause, VacuousCheck
from .scenario import describe, where
from .target import StoreTarget

__all__ = ["GetTarget", "main", "serve"]

GetTarget = Callable[[], StoreTarget]


def serve(channel: Channel, target: GetTarget) -> None:
    """Run the procedures that are asked for until the other end hangs up; for messages and replies see `child`."""
    speak_over(channel)
    expect_children()
    while (message := channel.receive()) is not None:
        try:
            procedure = procedure_named(message["procedure"])
            if message.get("tells_call"):
                channel.send(CALLED)
            came = procedure(target, message["location"], **message["arguments"])
        except VacuousCheck as nothing:
            channel.send({"vacuous": str(nothing)})
        except BrokenClause as broken:
            channel.send({"broken": broken.message, "details": broken.details})
        except (Exception, SystemExit) as error:
            # The store runs in forks, so it is a procedure of ours that has raised.
            place = "".join(f" ({text})" for _, text in where(error))
            channel.send({"vacuous": f"the check itself broke, please report it: {describe(error)}{place}"})
        else:
            channel.send({"ok": True, "came": came})


def main(reads: str, writes: str) -> None:
    """Serve in a fresh interpreter; the arguments are two inherited descriptors, the first message names the target."""
    die_with_parent(os.getppid())
    channel = Channel(int(reads), int(writes))
    start = channel.receive()
    if start is not None:
        serve(channel, lambda: StoreTarget.parse(start["target"]))
    sys.stdout.flush()
    os._exit(0)
