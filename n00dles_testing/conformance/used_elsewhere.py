"""Using one store object from somewhere else: another event loop, other threads, the child of a fork.

These are procedures for another process: whatever hangs or is corrupted there is gone with it. Each returns what its
users did and what came, in their order; what that ought to have been is for the check to say. `failed` is what went
wrong beside the calls of the store, so that some of them were not made: nothing is shown then.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from n00dles.context import PipelineContext

from ..parent import die_with_parent, expect_children
from .child import still_alive
from .expect import VacuousCheck
from .in_threads import in_threads
from .instance import Instance
from .overlap import many_switches
from .processes import describe_exit
from .records import Record
from .scenario import describe
from .target import StoreTarget

__all__ = ["User", "use_after_a_fork", "use_in_loops", "use_in_threads"]

Entry = dict[str, Any]

_ATTEMPTS = 20
_SAVES = 5
_PAUSE = 0.005
_TIME_TO_EXIT = 0.5
_BEFORE, _THERE, _AGAIN, _HERE, _AFTERWARDS = "a-before", "b-there", "c-again", "d-here", "e-afterwards"
"""Names of nodes, completed in the order of the alphabet: another order is for S02 to find."""
_INPUTS = {"topic": "cats"}
"""A run is always loaded with the inputs that it was created with: others are for S01."""


class User:
    """Somebody who uses a store, and writes down each call before it is made, and what came of it."""

    def __init__(self, name: str, tell: Callable[[Entry], None]) -> None:
        self.name = name
        self._tell = tell

    async def open(self, target: StoreTarget, location: str | None) -> Instance:
        """Open the store."""
        async with _Call(self, "open", "") as call:
            call.came = await target.open(location)
        return call.came  # type: ignore[no-any-return]

    async def load(self, instance: Instance, run_id: str, inputs: dict[str, Any]) -> PipelineContext | None:
        """Load or create a run; return None if that raised."""
        async with _Call(self, "load_or_create", run_id, inputs=inputs) as call:
            reply = await instance.load_or_create(run_id, inputs)
            call.entry["record"] = json.loads(json.dumps(Record.read(reply).to_dict(), default=repr))
            return instance.context(reply, run_id)
        return None

    async def save(self, instance: Instance, context: PipelineContext | None, node: str) -> bool:
        """Complete a node and save; return whether that was acknowledged."""
        if context is None:
            return False
        async with _Call(self, "save", context.run_id, node=node) as call:
            context.checkpoint(node, output_of(self.name, node))
            await instance.save(context.run_id, context)
        return "raised" not in call.entry

    async def load_and_save(self, instance: Instance, run_id: str, node: str) -> None:
        """Load a run, save a node, and load it again."""
        await self.save(instance, await self.load(instance, run_id, _INPUTS), node)
        await self.load(instance, run_id, _INPUTS)

    async def close(self, instance: Instance) -> None:
        """Close the store."""
        async with _Call(self, "close", ""):
            await instance.close()

    def tell(self, entry: Entry) -> None:
        """Write an entry down."""
        self._tell({"who": self.name, **entry})


def output_of(who: str, node: str) -> dict[str, str]:
    """Return the output that somebody saves."""
    return {"text": f"{node}, of {who}"}


class _Call:
    """One call: told when it begins, and again when it has ended. What it raises is what came of it."""

    def __init__(self, user: User, name: str, run_id: str, **more: Any) -> None:
        self.entry: Entry = {"call": name, "run_id": run_id, **more}
        self.came: Any = None
        self._user = user

    async def __aenter__(self) -> _Call:
        self._user.tell({**self.entry, "begins": True})
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        # Nobody cancels here, so that is the store's doing, too.
        is_caught = isinstance(error, Exception | SystemExit | asyncio.CancelledError)
        if error is not None and is_caught:
            self.entry["raised"] = describe(error)
        if error is None or is_caught:
            self._user.tell(self.entry)
        return is_caught and self.entry["call"] != "open"


class _Book:
    """What several users have told, in one list."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._lock = threading.Lock()
        self._told_at = time.monotonic()

    def user(self, name: str) -> User:
        return User(name, self.tell)

    def tell(self, entry: Entry) -> None:
        with self._lock:
            self.entries.append(entry)
            self.begin_anew()
        still_alive()

    def begin_anew(self) -> None:
        """Count the time without a word from now on."""
        self._told_at = time.monotonic()

    def is_silent(self, limit: float) -> bool:
        """Whether nobody has told anything for so long: no call has ended, so one of them hangs."""
        still_alive()
        return time.monotonic() - self._told_at > limit


async def use_in_loops(target: StoreTarget, location: str | None, run_id: str, limit: float) -> dict[str, Any]:
    """Use one store object in two event loops of one thread, one after the other, and then in one of another thread."""
    book = _Book()
    stores: list[Instance] = []

    async def first() -> None:
        user = book.user("the first event loop")
        with suppress(Exception, SystemExit, asyncio.CancelledError):  # it is told
            stores.append(await user.open(target, location))
        if stores:
            await user.save(stores[0], await user.load(stores[0], run_id, _INPUTS), _BEFORE)

    async def second() -> None:
        await book.user("a second event loop").load_and_save(stores[0], run_id, _HERE)

    async def third() -> None:
        user = book.user("an event loop of another thread")
        await user.load_and_save(stores[0], run_id, _AFTERWARDS)
        await user.close(stores[0])

    def first_and_second() -> None:
        asyncio.run(first())
        if stores:
            asyncio.run(second())

    has_ended, failed = await _in_threads([first_and_second], book, limit)
    if has_ended and stores and not failed:
        has_ended, failed = await _in_threads([lambda: asyncio.run(third())], book, limit)
    return {"entries": book.entries, "has_ended": has_ended, "failed": failed}


async def use_in_threads(
    target: StoreTarget, location: str | None, run_ids: list[str], together: str, limit: float
) -> dict[str, Any]:
    """Use one store object in a thread for each of `run_ids`, all at once: for that run, and for one of all."""
    book = _Book()
    owner = book.user("who opened it")
    instance = await owner.open(target, location)
    await owner.load(instance, together, _INPUTS)
    barrier = threading.Barrier(len(run_ids))

    async def use(number: int, run_id: str) -> None:
        user = book.user(f"thread {number}")
        inputs = {"topic": f"of thread {number}"}
        context = await user.load(instance, run_id, inputs)
        for save in range(_SAVES):
            await user.save(instance, context, f"node{save}")
            await user.load(instance, run_id, inputs)
        for _ in range(_ATTEMPTS):
            if await user.save(instance, await user.load(instance, together, _INPUTS), f"thread{number}"):
                break

    def work(number: int, run_id: str) -> None:
        barrier.wait()
        asyncio.run(use(number, run_id))

    works = [partial(work, number, run_id) for number, run_id in enumerate(run_ids)]
    with many_switches():
        has_ended, failed = await _in_threads(works, book, limit)
    if has_ended:
        have_called = {entry["who"] for entry in book.entries}
        failed += [f"thread {n} made no call" for n in range(len(run_ids)) if f"thread {n}" not in have_called]
        for number, run_id in enumerate(run_ids):
            await owner.load(instance, run_id, {"topic": f"of thread {number}"})
        await owner.load(instance, together, _INPUTS)
        await owner.close(instance)
    return {"entries": book.entries, "has_ended": has_ended, "failed": failed}


async def use_after_a_fork(
    target: StoreTarget,
    location: str | None,
    *,
    mine: str,
    childs: str,
    both: str,
    closes_first: bool,
    limit: float,
) -> dict[str, Any]:
    """Use one store object in this process and in a fork of it: each for a run of its own, then for one of both.

    With `closes_first` this process closes the store before the child has done its part, and the child ends without
    closing it; else both close it, the child first.
    """
    book = _Book()
    user = book.user("the parent")
    instance = await user.open(target, location)
    for run_id in (mine, childs, both):
        await user.save(instance, await user.load(instance, run_id, _INPUTS), _BEFORE)
    try:
        child = _Child.forked(
            lambda tell, wait: _be_the_child(instance, (childs, both), tell, wait, closes=not closes_first)
        )
    except OSError as error:
        raise VacuousCheck(f"the process could not be forked, so nothing was shown: {describe(error)}") from error
    user.tell({"call": "fork", "run_id": ""})
    here = asyncio.ensure_future(user.load_and_save(instance, mine, _HERE))
    try:
        if await _ends(here, book, limit) and closes_first:
            await child.follow(book, "waits", limit)
            await user.close(instance)
        child.go_on()
        has_ended = await child.follow(book, "end", limit)
    finally:
        died = child.end()
    # What had to wait for a child that hangs goes on with its end.
    has_ended = await _ends(here, book, limit) and has_ended
    if has_ended and not closes_first:
        await user.load_and_save(instance, mine, _AFTERWARDS)
        await user.load_and_save(instance, both, _HERE)
        await user.close(instance)
    return {"entries": book.entries, "has_ended": has_ended, "died": died, "failed": child.failed}


def _be_the_child(
    instance: Instance, runs: tuple[str, str], tell: Callable[[Entry], None], wait: Callable[[], None], *, closes: bool
) -> None:
    """Use the inherited store in an event loop of its own, as a worker does that was forked."""
    user = User("the child", tell)
    childs, both = runs

    async def use() -> None:
        await user.load_and_save(instance, childs, _THERE)
        user.tell({"call": "waits", "run_id": ""})
        wait()
        await user.load_and_save(instance, childs, _AGAIN)
        await user.load_and_save(instance, both, _THERE)
        if closes:
            await user.close(instance)
        user.tell({"call": "end", "run_id": ""})

    asyncio.run(use())


class _Child:
    """A fork of this process that tells what it does, and waits half-way until it is told to go on."""

    def __init__(self, pid: int, reads: int, goes: int) -> None:
        self._pid = pid
        self._reads = reads
        self._goes = goes
        self._told = b""
        self._has_hung_up = False
        self.failed: list[str] = []
        os.set_blocking(reads, False)

    @classmethod
    def forked(cls, work: Callable[[Callable[[Entry], None], Callable[[], None]], None]) -> _Child:
        """Fork; the child does `work`, which is handed what it tells with, and what it waits with."""
        reads, writes = os.pipe()
        waits, goes = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        expect_children()
        parent, pid = os.getpid(), os.fork()
        if pid == 0:
            try:
                os.close(reads)
                os.close(goes)
                die_with_parent(parent)
                work(lambda entry: _write(writes, entry), lambda: _wait(waits))
                os._exit(0)
            except BaseException as error:
                traceback.print_exc()
                _write(writes, {"failed": f"the child: {describe(error)}"})
            finally:
                os._exit(1)
        os.close(writes)
        os.close(waits)
        return cls(pid, reads, goes)

    def go_on(self) -> None:
        """Let it go on, if it is there."""
        with suppress(BrokenPipeError):
            os.write(self._goes, b"g")

    async def follow(self, book: _Book, until: str, limit: float) -> bool:
        """Read what it tells into the book until it makes this call; return False if it is silent for `limit`."""
        book.begin_anew()
        while not book.is_silent(limit):
            line, found, rest = self._told.partition(b"\n")
            if found:
                self._told = rest
                entry = json.loads(line)
                if "failed" in entry:
                    self.failed.append(entry["failed"])
                    return False
                book.tell(entry)
                if book.entries[-1]["call"] == until:
                    return True
            elif not await self._read():
                return False
        return False

    async def _read(self) -> bool:
        try:
            piece = os.read(self._reads, 65_536)
        except BlockingIOError:
            await asyncio.sleep(_PAUSE)
            return True
        self._told += piece
        self._has_hung_up = not piece
        return bool(piece)

    def end(self) -> str:
        """End it, and return how it had ended by itself, if that was not the way in which it should."""
        deadline = time.monotonic() + (_TIME_TO_EXIT if self._has_hung_up else 0.0)
        ended, status = os.waitpid(self._pid, os.WNOHANG)
        while not ended and time.monotonic() < deadline:
            time.sleep(_PAUSE)
            ended, status = os.waitpid(self._pid, os.WNOHANG)
        if not ended:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._reads)
        os.close(self._goes)
        return describe_exit(os.waitstatus_to_exitcode(status)) if ended and status else ""


def _wait(waits: int) -> None:
    """Wait to be told, or for the end of who would."""
    os.read(waits, 1)


def _write(descriptor: int, entry: Entry) -> None:
    data = json.dumps(entry).encode() + b"\n"
    while data:
        data = data[os.write(descriptor, data) :]


async def _ends(work: asyncio.Future[None], book: _Book, limit: float) -> bool:
    """Wait for some calls; return False if nobody has told anything for `limit`."""
    book.begin_anew()
    while not work.done():
        if book.is_silent(limit):
            return False
        await asyncio.wait({work}, timeout=_PAUSE)
    await work
    return True


async def _in_threads(works: Sequence[Callable[[], Any]], book: _Book, limit: float) -> tuple[bool, list[str]]:
    """Do each work in a thread, all at once, as `in_threads` does; it is given up when all are silent for `limit`."""
    book.begin_anew()
    return await in_threads(works, lambda: book.is_silent(limit))
