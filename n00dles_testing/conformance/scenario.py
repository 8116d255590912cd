"""One thing that a check tries on a store: its calls, in order, with what came and what was acknowledged."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import os
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from n00dles.context import PipelineContext
from n00dles.errors import N00dlesError

from .expect import BrokenClause, Expectation
from .instance import Instance
from .own_code import innermost_of_the_store
from .records import Record, UnreadableReplyError, show

if TYPE_CHECKING:
    from .elsewhere import Elsewhere
    from .journal import Journal
    from .subject import StoreSubject

__all__ = ["Handle", "Scenario", "describe", "message_of", "where"]

T = TypeVar("T")

_SHOWN_OF_AN_ERROR = 600


@dataclass(slots=True)
class Handle:
    """A run as the store gave it out.

    `handed` is the dict of inputs that the store was called with, `reply` the object that it returned, `record` what
    that said at the moment, and `context` what n00dles would work on.
    """

    run_id: str
    handed: dict[str, Any]
    reply: Any
    record: Record
    context: PipelineContext


class Scenario:
    """A store on a fresh location, opened by the first call and closed at the end.

    `acknowledged` is the suite's model: the record of each run that the store must give back. Every method that calls
    the store raises `BrokenClause` if the store raises, ends the thread, or returns what cannot be read.
    """

    def __init__(
        self, subject: StoreSubject, title: str, journal: Journal, location: str | None, *, is_probe: bool = False
    ) -> None:
        """A probe keeps to itself what breaks in it."""
        self.subject = subject
        self.title = title
        self.journal = journal
        self.location = location
        self.acknowledged: dict[str, Record] = {}
        self.raw: Any = None
        self._instance: Instance | None = None
        self._is_probe = is_probe
        self._has_judged = False
        self._going_on = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        broken = isinstance(error, BrokenClause)
        if isinstance(error, BrokenClause) and not self._is_probe:
            self._found(error, await self.subject.raw_records(self))
        if error is None or isinstance(error, Exception):
            await self._leave(told=error is None and not self._is_probe)
        return broken

    @property
    def folder(self) -> str | None:
        """The location, if it is a folder in which files can be looked at, and no URL."""
        return self.location if self.subject.served is None else None

    # The store's own calls.

    async def open(self) -> None:
        """Open an instance on the location, if none is open; every other call does it by itself."""
        if self._instance is None:
            where = "" if self.location is None else os.path.basename(self.location)
            opening = self.subject.target.open(self.location)
            self._instance = await self.call(f"open({where})", opening, lambda _: "open")
            self.raw = self._instance.raw

    async def create(self, inputs: Mapping[str, Any] | None = None, run_id: str | None = None) -> Handle:
        """Create a run that the store does not know; its inputs are then acknowledged."""
        run_id = run_id or self.subject.fresh_run_id()
        inputs = {"topic": self.subject.draw.text()} if inputs is None else inputs
        handle = await self._load_or_create(run_id, inputs)
        self.acknowledged[run_id] = Record.new(inputs)
        return handle

    async def load(self, run_id: str, inputs: Mapping[str, Any] | None = None) -> Handle:
        """Load a known run, passing the inputs that it was created with unless others are given."""
        return await self._load_or_create(run_id, self.acknowledged[run_id].inputs if inputs is None else inputs)

    async def load_unknown(self, run_id: str, inputs: Mapping[str, Any]) -> Handle:
        """Load a run that may be there or not; nothing is expected, and nothing acknowledged."""
        return await self._load_or_create(run_id, inputs)

    async def look_for(self, run_id: str, inputs: Mapping[str, Any]) -> Handle:
        """Load a run of which it is not known what is found; that is then acknowledged. It may be created by this."""
        handle = await self._load_or_create(run_id, inputs)
        self.acknowledged[run_id] = handle.record
        return handle

    async def creates_or_refuses(self, inputs: Mapping[str, Any], run_id: str) -> Handle | Exception:
        """Create as `create` does; return the exception if the store raised one instead.

        Raises `BrokenClause` if the store cannot be opened: that refuses no run.
        """
        await self.open()
        try:
            return await self.create(inputs, run_id)
        except BrokenClause as refused:
            cause = refused.__cause__
            if not isinstance(cause, Exception) or isinstance(cause, UnreadableReplyError):
                raise
            return cause

    async def save(self, handle: Handle, outputs: Mapping[str, Any]) -> None:
        """Complete nodes in the context of `handle`, in this order, and save it; the outputs are then acknowledged."""
        await self._save(handle, outputs)
        self.acknowledged[handle.run_id] = self.acknowledged[handle.run_id].after(outputs)
        await self.look_out_of_band(handle.run_id)

    async def saves_or_refuses(self, handle: Handle, outputs: Mapping[str, Any]) -> bool:
        """Save as `save` does; return False if the store raised an exception instead, and nothing is acknowledged."""
        if saved := await self.late_save(handle, outputs):
            self.acknowledged[handle.run_id] = self.acknowledged[handle.run_id].after(outputs)
            await self.look_out_of_band(handle.run_id)
        return saved

    async def late_save(self, handle: Handle, outputs: Mapping[str, Any]) -> bool:
        """Save what others have gone on with or deleted: what it changes, and may not, is for the check to say.

        Returns False if the store raised an exception. Raises `BrokenClause` if it cannot be opened: that refuses no
        save.
        """
        await self.open()
        try:
            await self._save(handle, outputs)
        except BrokenClause as refused:
            if not isinstance(refused.__cause__, Exception):
                raise
            return False
        return True

    async def delete(self, run_id: str) -> None:
        """Delete a run; nothing of it is acknowledged any more."""
        instance = await self.opened()
        await self.call(f"delete({show(run_id)})", instance.delete(run_id), lambda _: "acknowledged")
        self.acknowledged.pop(run_id, None)
        await self.look_out_of_band(run_id)

    async def close(self) -> None:
        """Close the instance, in the way that its shape offers."""
        instance = await self.opened()
        self._instance = None
        await self.call("close()", instance.close(), lambda _: "closed")

    async def reopen(self) -> bool:
        """Close, and open on the same location; return whether another object was opened than before."""
        before = self.raw
        await self.close()
        await self.open()
        return before is not self.raw

    async def keeps_after_reopening(self, *controls: str) -> bool:
        """Close and open again; return whether the store still has these runs, for clauses that are not about that.

        They are controls: runs in which nothing was done that the clause is about, saved in the same way else. What the
        clause is about is then expected, and may not be its own control.
        """
        await self.reopen()
        return all([(await self.load(run_id)).record == self.acknowledged[run_id] for run_id in controls])

    def elsewhere(
        self, *, fresh: bool = False, tracing: bool = False, patience: float | None = None
    ) -> AbstractAsyncContextManager[Elsewhere]:
        """Return another process that opens the same location, started on entering.

        It is the fork of a clean process, which takes some milliseconds. Where the hash seed matters, or what a module
        keeps since its import, ask for a `fresh` interpreter; for `tracing`, for one that traces forks of itself (see
        `traced`). With `patience`, a call there that takes more seconds
        raises `BrokenClause`: a store that one process has open may have another one wait for its turn.
        """
        from .elsewhere import Elsewhere

        return Elsewhere.started(self, fresh=fresh, tracing=tracing, patience=patience)

    # What must hold.

    async def expect_acknowledged(
        self, run_id: str, *, because: str, inputs: Mapping[str, Any] | None = None
    ) -> Handle:
        """Load a run and compare it with what was acknowledged."""
        __tracebackhide__ = True
        handle = await self.load(run_id, inputs)
        self.expect(handle.record).equals(self.acknowledged[run_id], because=because)
        return handle

    async def expect_unknown(self, run_id: str, *, because: str) -> Handle:
        """Load a run that must not be there: it is created, with inputs that it never had."""
        __tracebackhide__ = True
        handle = await self.create({"created": "anew"}, run_id)
        self.expect(handle.record).equals(self.acknowledged[run_id], because=because)
        return handle

    async def look_out_of_band(self, run_id: str) -> None:
        """Compare a run with what is stored, if there is a reader for that, and no other call may be changing it."""
        __tracebackhide__ = True
        reader = self.subject.reader
        if reader is not None and not self._is_probe and not self._going_on:
            await reader.compare(self, run_id, self.acknowledged.get(run_id))

    def expect(self, came: Any) -> Expectation:
        """Return the expectation of a value; a broken one is told with this scenario's story."""
        return Expectation(came, self.judged)

    def tell(self, text: str) -> None:
        """Add a line to the story: what the check does that is no call."""
        self.journal.write(text)

    async def call(self, text: str, awaited: Awaitable[T], outcome: Callable[[T], str]) -> T:
        """Await a call of the store's and tell it. Raises `BrokenClause` for whatever the store raises."""
        __tracebackhide__ = True
        step = self.journal.write(text)
        self._going_on += 1
        try:
            result = await awaited
            self.journal.outcome(step, outcome(result))
        except BrokenClause:
            raise
        except UnreadableReplyError as error:
            self.journal.outcome(step, "unreadable")
            raise BrokenClause(str(error)) from error
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            # A cancellation that nobody asked for is the store's own doing.
            if isinstance(error, asyncio.CancelledError) and _being_cancelled():
                raise
            self.journal.outcome(step, f"raised {type(error).__name__}")
            raise BrokenClause(f"{text.partition('(')[0]} raised {describe(error)}", where(error)) from error
        finally:
            self._going_on -= 1
        return result

    async def _save(self, handle: Handle, outputs: Mapping[str, Any]) -> None:
        for node, output in outputs.items():
            handle.context.checkpoint(node, output)
        instance = await self.opened()
        saving = instance.save(handle.run_id, handle.context)
        await self.call(f"save({show(handle.run_id)}) with {show(dict(outputs))}", saving, lambda _: "acknowledged")

    async def _load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> Handle:
        instance = await self.opened()
        handed = copy.deepcopy(dict(inputs))

        async def load() -> Handle:
            reply = await instance.load_or_create(run_id, handed)
            record = Record.read(reply)
            try:
                return Handle(run_id, handed, reply, record, instance.context(reply, run_id))
            except N00dlesError as error:
                raise UnreadableReplyError(str(error)) from error

        return await self.call(
            f"load_or_create({show(run_id)}, {show(dict(inputs))})", load(), lambda handle: str(handle.record)
        )

    async def opened(self) -> Instance:
        """Return the instance, opened if none is; for calls that are not told one by one."""
        await self.open()
        assert self._instance is not None
        return self._instance

    async def _leave(self, *, told: bool) -> None:
        if not self.subject.target.takes_location and self.acknowledged:
            await self._clean_up()
        if self._instance is None:
            return
        try:
            await self.close()
        except BrokenClause as broken:
            if told:
                self._found(broken)

    def judged(self) -> None:
        """Count the scenario, once: what opens a store and compares nothing has shown nothing.

        Whoever judges by other means than `expect` calls it when that is done.
        """
        if not self._has_judged and not self._is_probe:
            self._has_judged = True
            self.subject.scenarios += 1

    def _found(self, broken: BrokenClause, raw: Sequence[str] = ()) -> None:
        """A call that raised is an expectation, too: the one that it does not."""
        self.judged()
        self.subject.found(broken, self.journal, self.location, raw)

    async def _clean_up(self) -> None:
        """Where the location is the user's own, leave nothing behind."""
        for run_id in list(self.acknowledged):
            with contextlib.suppress(BrokenClause):
                await self.delete(run_id)


def describe(error: BaseException) -> str:
    """Return the kind of an error and its message."""
    text = message_of(error)
    if len(text) > _SHOWN_OF_AN_ERROR:
        text = f"{text[:_SHOWN_OF_AN_ERROR]}… ({len(text)} characters)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def message_of(error: BaseException) -> str:
    """Return the message of an error, which may be one of a store whose `__str__` raises."""
    try:
        return str(error)
    except Exception as broken:
        return f"(its message cannot be read: __str__ raises {type(broken).__name__})"


def where(error: BaseException) -> tuple[tuple[str, str], ...]:
    """Return the line that raised, labelled for a story: of the store's own code, if the error came through that."""
    frame = innermost_of_the_store(traceback.extract_tb(error.__traceback__))
    if frame is None:
        return ()
    return (("raised", f"{frame.filename}:{frame.lineno} in {frame.name}: {frame.line}"),)


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
