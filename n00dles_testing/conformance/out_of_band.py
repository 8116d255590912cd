"""Reading the raw record by other means than the store's own code: what was acknowledged must be on disk, too.

A store that keeps an acknowledged save somewhere else, and answers its own loads from there, looks right to everybody
who asks it. So its author may write a reader, with the plain file, another driver, another language:

    def read(location: str, run_id: str) -> dict | None: ...

It returns a mapping with `inputs`, `completed` and `order`, or None for a run that is not there. (`location` is None if
the factory takes none.) What goes wrong in the reader is its own fault, and never the store's.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

from n00dles import targets
from n00dles.errors import ConfigurationError

from .expect import BrokenClause
from .records import Record, UnreadableReplyError, difference, show
from .scenario import describe, where

if TYPE_CHECKING:
    from .scenario import Scenario

__all__ = ["COMPARED_IN", "READING", "OutOfBandReader", "ReaderFaultError"]

COMPARED_IN = ("S02", "S07", "C01", "C02")
"""The clauses in which each acknowledged save and delete is compared with what the reader sees."""

READING = "reader "
"""How a step begins in which the reader is called: whatever happens then is not the store's doing."""


class ReaderFaultError(Exception):
    """The reader has not told what is stored; the message says what it did instead."""


class OutOfBandReader:
    """A reader, and how far it has come: `compared` records, and its `fault`, empty as long as there is none."""

    def __init__(self, name: str, read: Callable[[str | None, str], Any], limit: float) -> None:
        """`name` is what the user calls it; `limit` is how many seconds one call may take."""
        self.name = name
        self.compared = 0
        self.fault = ""
        self._read = read
        self._limit = limit
        self._has_found_any = False

    @classmethod
    def load(cls, text: str, limit: float) -> Self:
        """Import the function that `text` names. Raises `ConfigurationError` if there is none of two arguments."""
        read = targets.load_target(text)
        try:
            inspect.signature(read).bind("location", "run_id")
        except (TypeError, ValueError):
            raise ConfigurationError(
                f"{text} is no out-of-band reader: write a function read(location, run_id) that returns a mapping with "
                "inputs, completed and order, or None"
            ) from None
        return cls(text, read, limit)

    async def compare(self, scenario: Scenario, run_id: str, wanted: Record | None) -> None:
        """Hold what the reader sees of a run against what was acknowledged; None: deleted.

        Raises `BrokenClause` if that is something else. After a fault of its own the reader is asked no more.
        """
        if self.fault:
            return
        step = scenario.journal.write(f"{READING}{self.name}: {show(run_id)}")
        try:
            came = await self.read(scenario.location, run_id)
        except ReaderFaultError as fault:
            self.fault = f"the out-of-band reader {self.name} {fault}"
            scenario.journal.outcome(step, "failed")
            return
        scenario.journal.outcome(step, _told(came))
        self.compared += 1
        self._has_found_any |= came is not None
        if wanted is None or came is None:
            found = None if wanted is came else f"{'a record' if wanted is None else 'no record'} of {show(run_id)}"
        else:
            found = difference(wanted, came)
        if found is not None:
            raise BrokenClause(f"the record outside the store is another one: {found}", self._details(wanted, came))

    async def tell(self, location: str | None, run_ids: list[str]) -> list[str]:
        """Return a line for each run, saying what is stored of it."""
        lines = []
        for run_id in run_ids:
            with contextlib.suppress(ReaderFaultError):
                if not self.fault:
                    lines.append(f"{show(run_id)}: {_told(await self.read(location, run_id))}")
        return lines

    async def read(self, location: str | None, run_id: str) -> Record | None:
        """Call the reader, in a thread that is left behind if it hangs. Raises `ReaderFaultError`."""
        loop = asyncio.get_running_loop()
        came: asyncio.Future[Any] = loop.create_future()

        def call() -> None:
            try:
                result, error = self._read(location, run_id), None
            except BaseException as raised:
                result, error = None, raised
            with contextlib.suppress(RuntimeError):  # the loop has been closed: nobody waits any more
                loop.call_soon_threadsafe(_settle, came, result, error)

        threading.Thread(target=call, daemon=True).start()
        try:
            reply = await asyncio.wait_for(came, self._limit)
        except TimeoutError:
            raise ReaderFaultError(f"did not answer within {self._limit:g} s") from None
        except _RaisedError as raised:
            place = "".join(f" ({text})" for _, text in where(raised.error))
            raise ReaderFaultError(f"raised {describe(raised.error)}{place}") from raised.error
        return _record(reply)

    def _details(self, wanted: Record | None, came: Record | None) -> tuple[tuple[str, str], ...]:
        why = "the call was acknowledged, so it is stored, for whoever looks"
        if not self._has_found_any:
            why += "; the reader has found no run so far: does it look in the right place?"
        return ("allowed", _told(wanted)), ("came", _told(came)), ("why", why)


class _RaisedError(Exception):
    """Carries whatever the reader raised: a future takes neither `SystemExit` nor `StopIteration` well."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def _settle(came: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if came.done():
        return
    if error is not None:
        came.set_exception(_RaisedError(error))
    else:
        came.set_result(result)


def _record(reply: Any) -> Record | None:
    if reply is None:
        return None
    if inspect.iscoroutine(reply):
        reply.close()
        raise ReaderFaultError("is a coroutine function; write a plain one")
    if not isinstance(reply, Mapping):
        raise ReaderFaultError(f"returned {show(reply)} ({type(reply).__name__}), and neither a mapping nor None")
    try:
        return Record.read(reply)
    except UnreadableReplyError as error:
        why = str(error).removeprefix("the store returned ")
        raise ReaderFaultError(f"returned {why}; write inputs, completed and order") from error
    except Exception as error:
        raise ReaderFaultError(f"returned what cannot be copied: {describe(error)}") from error


def _told(record: Record | None) -> str:
    return "no record" if record is None else str(record)
