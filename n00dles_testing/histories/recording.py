"""Clients that record what they do to a real store, from several processes with the one monotonic clock of the host.

Each process writes a journal of its own: a line before a call and a line after it, so that a call during which the
process is killed stands there without an answer. `gather` makes one history of all journals.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from n00dles.errors import SerializationError, StaleContextError

from .calls import Call, History
from .file import DamagedHistoryError, call_of, form_of

__all__ = ["Held", "Journal", "RecordingClient", "UnknownOutcomeError", "gather"]

_INPUT = "n00dles_testing_token"
_OUTPUT = "n00dles_testing_token"
"""Reserved: an input, and a node, that carry the token."""


class UnknownOutcomeError(Exception):
    """Nobody knows whether the call took effect. Its client is retired; go on with another one."""


class Journal:
    """The calls of one process, as lines in a file that survive its death."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._numbers = count()

    def begin(self, call: Call) -> int:
        """Note that a call is about to be made; return its number here."""
        number = next(self._numbers)
        self._write({"begin": number, **form_of(call)})
        return number

    def end(self, number: int, call: Call) -> None:
        """Note how a call has ended."""
        self._write({"end": number, **form_of(call)})

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def _write(self, form: dict[str, Any]) -> None:
        os.write(self._fd, json.dumps(form).encode() + b"\n")


def gather(paths: Iterable[Path], *, starts_empty: bool, about: dict[str, Any] | None = None) -> History:
    """Return one history of the journals of several processes. Raises `DamagedHistoryError`.

    A last line that was cut by a kill is left out: its call had not begun, or stands there without an answer.
    """
    calls: list[Call] = []
    for path in paths:
        by_number: dict[int, Call] = {}
        whole, _, _ = path.read_text(encoding="utf-8").rpartition("\n")
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                form = json.loads(line)
                by_number[form.get("begin", form.get("end"))] = call_of(path, number, line)
            except (ValueError, AttributeError) as error:
                raise DamagedHistoryError(f"{path}, line {number} is no line of a journal: {error}.") from None
        calls += by_number.values()
    return History(tuple(sorted(calls, key=lambda call: call.invoked)), starts_empty, about or {})


@dataclass(slots=True)
class Held:
    """A context as a client holds it, and which save it shows. Without `has_revision` it tells no revision."""

    context: Any
    token: str | None
    incarnation: str | None
    has_revision: bool = True

    @property
    def revision(self) -> int | None:
        """The revision that the store has told, if it keeps one."""
        revision = getattr(self.context, "revision", None)
        return revision if self.has_revision and isinstance(revision, int) else None


class RecordingClient:
    """One client of a store (anything with the three async methods): makes one call at a time, and records it.

    `timeout` is in seconds; a call that takes longer has an unknown outcome. `pause` is awaited before and after the
    store is called, within the recorded interval, and widens it: `lambda: asyncio.sleep(0.002)`. `revisions` says
    whether the store keeps them: a context has the attribute in any case.
    """

    def __init__(
        self,
        store: Any,
        name: str,
        journal: Journal,
        *,
        timeout: float = 30.0,
        pause: Callable[[], Awaitable[None]] | None = None,
        revisions: bool = True,
    ) -> None:
        self._store, self.name, self._journal = store, name, journal
        self._timeout, self._pause, self._revisions = timeout, pause, revisions
        self._tokens = count(1)
        self._retired = False

    async def load(self, run_id: str, more: Mapping[str, Any] | None = None) -> Held:
        """Load or create a run; `more` are further inputs, which are not recorded. Raises `UnknownOutcomeError`."""
        token = self._token()
        call = self._call("load", run_id, inputs=token)
        held: list[Held] = []

        async def make() -> dict[str, Any]:
            context = await self._store.load_or_create(run_id, {_INPUT: token, **(more or {})})
            saved = context.completed.get(_OUTPUT)
            shown, incarnation = saved and saved["token"], context.inputs.get(_INPUT)
            held.append(Held(context, shown, incarnation, self._revisions))
            outputs = tuple(node for node in context.completed if node != _OUTPUT)
            return {
                "token": held[0].token,
                "revision": held[0].revision,
                "incarnation": held[0].incarnation,
                "outputs": outputs,
            }

        await self._record(call, make)
        return held[0]

    async def save(self, run_id: str, held: Held, *, stop: Callable[[], None] | None = None) -> bool:
        """Complete one more node and save; return False if that was refused. Raises `UnknownOutcomeError`.

        A refused context still shows what it was loaded at: to save it again is a stale save on purpose. `stop` is
        called before the store is, and returns when the process has stood still and goes on:
        `lambda: os.kill(os.getpid(), signal.SIGSTOP)`, with a SIGCONT from somebody else.
        """
        token = self._token()
        outputs = {node for node in held.context.completed if node != _OUTPUT}
        call = self._call(
            "save",
            run_id,
            token=token,
            parent=held.token,
            expected=held.revision,
            incarnation=held.incarnation,
            outputs=tuple(sorted({*outputs, f"node-{token}"})),
        )
        held.context.checkpoint(f"node-{token}", token)
        held.context.checkpoint(_OUTPUT, {"token": token, "parent_token": held.token, "client": self.name})

        async def make() -> dict[str, Any]:
            await self._store.save(run_id, held.context)
            return {"revision": held.revision}

        if stop is not None:
            stop()
            call = replace(call, woken=time.monotonic_ns())

        ended = await self._record(call, make)
        if ended.outcome == "ok":
            held.token = token
        return ended.outcome == "ok"

    async def delete(self, run_id: str) -> None:
        """Delete a run. Raises `UnknownOutcomeError`."""

        async def make() -> dict[str, Any]:
            await self._store.delete(run_id)
            return {}

        await self._record(self._call("delete", run_id), make)

    def _token(self) -> str:
        return f"{self.name}-{next(self._tokens)}"

    def _call(self, operation: Any, run_id: str, **fields: Any) -> Call:
        if self._retired:
            raise RuntimeError(f"the client {self.name} is retired: a call of it had no answer")
        return Call(self.name, operation, run_id, time.monotonic_ns(), None, "unknown", **fields)

    async def _record(self, call: Call, make: Callable[[], Awaitable[dict[str, Any]]]) -> Call:
        number = self._journal.begin(call)
        try:
            async with asyncio.timeout(self._timeout):
                if self._pause is not None:
                    await self._pause()
                told = await make()
                if self._pause is not None:
                    await self._pause()
        except StaleContextError:
            ended = self._failed(call, "conflict")
        except SerializationError as error:
            ended = self._failed(call, str(error))
        except BaseException as error:
            self._retired = True
            self._journal.end(number, replace(call, error=f"{type(error).__name__}: {error}"[:200]))
            if not isinstance(error, Exception):
                raise
            raise UnknownOutcomeError(f"{call.operation} of run {call.run_id!r}: {error!r}") from error
        else:
            ended = replace(call, outcome="ok", returned=time.monotonic_ns(), **told)
        self._journal.end(number, ended)
        return ended

    def _failed(self, call: Call, error: str) -> Call:
        return replace(call, outcome="fail", returned=time.monotonic_ns(), error=error[:200])
