"""A clean process that imports the user's module once, and is then copied for every life.

Why a process of its own: a fork of the test process would copy its threads' locks, event loop and connections in
whatever state they are. This one (`forking.py`) has a single thread, no event loop and no store when it forks.

It is told what to do over two pipes of its own, so that what the user's module prints or reads does not matter. It ends
with the process that started it.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from itertools import islice
from typing import Any

from ..interpreters import start_talking
from .ledger import Entry, read_ledger
from .scenario import BackendError, LifeEnd, PlannedRun, Subject

__all__ = ["ForkServer", "fork_is_available"]

_SERVER = f"{__package__}.forking"
_GRACE_SECONDS = 5.0


def fork_is_available() -> bool:
    """Whether this platform can copy a process."""
    return hasattr(os, "fork") and hasattr(signal, "SIGKILL")


class ForkServer:
    """The side of whoever wants lives lived. Starting it imports the target; `BackendError` says why that failed.

    `start_limit` is how many seconds the import may take, `folder` where relative names begin, by default here.
    """

    def __init__(
        self,
        subject: Subject,
        environment: Mapping[str, str] | None = None,
        *,
        start_limit: float = 120.0,
        folder: str | None = None,
    ) -> None:
        self._target = subject.target
        self._process, self._channel = start_talking(_SERVER, environment=environment, folder=folder)
        try:
            self._send({"subject": asdict(subject), "seconds": start_limit})
            self.description: dict[str, Any] = self._receive(start_limit + _GRACE_SECONDS)["description"]
        except BaseException:
            self.close()
            raise

    def play(self, scenarios: Iterable[PlannedRun], lanes: int = 1) -> Iterator[tuple[PlannedRun, list[LifeEnd]]]:
        """Have scenarios lived, up to `lanes` at a time. Raises `BackendError` if the server is gone."""
        waiting = iter(scenarios)
        sent: dict[str, PlannedRun] = {}

        def send() -> None:
            for scenario in islice(waiting, lanes - len(sent)):
                sent[scenario.id] = scenario
                self._send(scenario.to_dict())

        send()
        while sent:
            # Every life has a limit of its own, and the server keeps it; this one is for a server that hangs.
            limit = max((len(s.plan) + 2) * s.time_limit for s in sent.values()) + _GRACE_SECONDS
            reply = self._receive(limit)
            done = sent.pop(reply["id"])
            send()  # before the caller judges this one, so that nobody waits for anybody
            yield done, [LifeEnd(**end) for end in reply["lives"]]

    def entries(self, scenario: PlannedRun) -> list[Entry]:
        """Return the ledger of a scenario that was lived."""
        return read_ledger(scenario.ledger)

    def close(self) -> None:
        """End the server and, with it, any child that lives."""
        self._channel.close()
        try:
            self._process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, message: dict[str, Any]) -> None:
        with suppress(BrokenPipeError):  # who waits for the reply learns that the server is gone
            self._channel.send(message)

    def _receive(self, limit: float) -> dict[str, Any]:
        try:
            reply = self._channel.receive(limit)
        except TimeoutError:
            self._process.kill()
            raise BackendError(
                f"the fork server of {self._target} did not answer within {limit:.0f} s, and was ended."
            ) from None
        if reply is None:
            code = self._process.wait(_GRACE_SECONDS)
            raise BackendError(
                f"the process that imports {self._target} ended with exit code {code} before it answered; what it "
                "printed stands on stderr. Does the module end the process while it is imported?"
            )
        if "error" in reply:
            raise BackendError(reply["error"])
        return reply
