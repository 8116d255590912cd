"""Which stores the clauses about servers and connections are about, and what is expected of a disturbed call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ..faults import TCPProxy
from .durability import talks_to
from .elsewhere import Elsewhere
from .expect import BrokenClause, MisuseError, NotApplicableError
from .player import Step
from .records import Record
from .scenario import Scenario
from .served import ServedLocations
from .subject import StoreSubject
from .used_meanwhile import use

__all__ = [
    "ThroughProxy",
    "expect_proxy",
    "expect_typed",
    "expect_within",
    "loads_again",
    "require_server",
    "through_a_proxy",
]

_PATIENCE = 0.9
"""Of the limit for a call: what is judged here is not to be killed by the runner."""
_PORTS = {"postgresql": 5432, "postgres": 5432, "redis": 6379}

_BEFORE_THE_NEXT = 0.05


async def require_server(subject: StoreSubject) -> ServedLocations:
    """Return the server of a store that has one.

    Raises `NotApplicableError` for a store that talks to none, which a probe has seen, and `MisuseError` for one whose
    server the suite does not know.
    """
    if subject.served is not None:
        return subject.served
    others = await talks_to(subject)
    if others is None:
        raise MisuseError(
            "whether the store talks to a server cannot be seen here: there is no /proc/self/fd, or it did not come so "
            "far. Run the check on Linux"
        )
    if not others:
        raise NotApplicableError(
            "the store talks to no server: a process that saved a run had no connection, and started no process"
        )
    raise MisuseError(
        f"the store talks to another process ({others[0]}), which the suite does not know. Have a server started: "
        "add --server postgres, or --server valkey, and open the store at the URL that the factory then gets as its "
        "location"
    )


def expect_proxy(served: ServedLocations, clause: str) -> None:
    """Raise `MisuseError` if no proxy can stand before the server."""
    if why := served.service.why_no_proxy:
        raise MisuseError(
            f"no proxy can stand before the server: {why}. With a server of its own: n00dles-testing check "
            f"{served.service.on_its_own} --clause {clause}"
        )


@dataclass(frozen=True, slots=True)
class ThroughProxy:
    """A process whose store is open through a proxy."""

    s: Scenario
    proxy: TCPProxy
    process: Elsewhere
    url: str

    async def call(self, step: Step) -> dict[str, Any]:
        """Do a step; return what came of it, see `use`."""
        return await self.process.perform(use, step_told(step), step=step, through=self.url)

    async def must(self, step: Step) -> dict[str, Any]:
        """Do a step that nothing disturbs. Raises `BrokenClause` if that raises."""
        came = await self.call(step)
        if "raised" in came:
            raise BrokenClause(f"{step['do']} raised {came['raised']}, and nothing disturbed it")
        return came

    async def loads_again(self, step: Step) -> Record:
        """Load until that works again, see `loads_again`."""
        return await loads_again(self.s, self.process, step, step_told(step), through=self.url)


@asynccontextmanager
async def through_a_proxy(s: Scenario) -> AsyncIterator[ThroughProxy]:
    """Start a process and a proxy before the server of the scenario's location, and end both on leaving."""
    assert s.location is not None
    parts = urlsplit(s.location)
    with TCPProxy(parts.hostname or "localhost", parts.port or _PORTS[parts.scheme]) as proxy:
        async with s.elsewhere(patience=s.subject.call_seconds * _PATIENCE) as process:
            yield ThroughProxy(s, proxy, process, proxy.url(s.location))


def step_told(step: Step) -> str:
    """Return a step as a call, for a story."""
    return f"{step['do']}({step['run']!r})"


def expect_typed(came: Mapping[str, Any], what: str) -> None:
    """Raise `BrokenClause` if a call raised what nobody can have meant."""
    if "raised" in came and not came["typed"]:
        raise BrokenClause(
            f"{what} raised {came['raised']}",
            (
                ("allowed", "an error of the store, of its client or of the system; or success, after another try"),
                ("came", came["raised"]),
                ("why", "who gets it cannot tell a lost connection from a fault of the program, and retries neither"),
            ),
        )


def expect_within(s: Scenario, came: Record, least: Record, maybe: Mapping[str, Any], because: str) -> None:
    """Compare a record with what is acknowledged, `least`; of the nodes `maybe` each may be there as well, whole."""
    extra = {node: output for node, output in maybe.items() if node in came.completed}
    order = [node for node in came.order if node in least.completed or node in extra]
    wanted = Record(least.inputs, {**least.completed, **extra}, tuple(order))
    s.expect(came).equals(wanted, because=because)


async def loads_again(s: Scenario, process: Elsewhere, step: Step, text: str, **more: Any) -> Record:
    """Load with the store that was disturbed, until it works again. Raises `BrokenClause` if it does not in time."""
    ends = time.monotonic() + s.subject.call_seconds
    while True:
        came = await process.perform(use, text, step=step, **more)
        if "raised" not in came:
            return Record.from_dict(came["record"])
        expect_typed(came, text.partition("(")[0])
        if time.monotonic() > ends:
            raise BrokenClause(
                f"the same store object does not work again: {text.partition('(')[0]} still raises {came['raised']}",
                (
                    ("allowed", f"that it works within {s.subject.call_seconds:g} s"),
                    ("came", came["raised"]),
                    ("why", "all is well again, and nobody restarts a worker for this"),
                ),
            )
        await asyncio.sleep(_BEFORE_THE_NEXT)
