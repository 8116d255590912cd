"""Another process that opens the store under test: a fresh interpreter (`main`), or a fork of the nursery.

Each message asks for one call, or for one procedure of the suite. Replies go over the given descriptors, never over
stdout, which belongs to the store. A message with `die` makes the process kill itself with SIGKILL as its next act
after the acknowledgement is sent. A procedure of many calls sends `alive` between them.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from typing import Any, NoReturn

from n00dles.context import PipelineContext

from ..channel import Channel
from ..factories import call_either
from ..parent import die_with_parent
from .clock import SkewedClock
from .expect import BrokenClause, VacuousCheck
from .instance import Instance
from .player import not_called
from .records import Record
from .scenario import describe
from .target import StoreTarget
from .touched import Touched

__all__ = [
    "CALLED",
    "Procedure",
    "TracingProcedure",
    "die",
    "main",
    "name_of",
    "procedure_named",
    "serve",
    "speak_over",
    "still_alive",
]

Procedure = Callable[..., Awaitable[dict[str, Any]]]
"""Called with the target, the location, and whatever was passed along."""
TracingProcedure = Callable[..., dict[str, Any]]
"""One for a process that traces: it has no event loop."""

CALLED = {"alive": True}
"""Sent when all is imported, and the store is called now: the clock of the call begins."""

_OURS = f"{__package__.partition('.')[0]}."


class _Child:
    def __init__(self, channel: Channel, target: StoreTarget) -> None:
        self._channel = channel
        self._target = target
        self._instance: Instance | None = None
        self._contexts: dict[str, PipelineContext] = {}
        self._touched: Touched | None = None
        self._leases: dict[str, Any] = {}
        self._clock = ExitStack()

    async def serve(self) -> None:
        while (message := await _next(self._channel)) is not None:
            try:
                reply = await self._answer(message)
            except VacuousCheck as nothing:
                self._channel.send({"vacuous": str(nothing)})
            except BrokenClause as broken:
                self._channel.send({"broken": broken.message, "details": broken.details})
            except (Exception, SystemExit) as error:
                self._channel.send({"raised": describe(error)})
            else:
                self._channel.send({"ok": True, **reply})
                if message.get("die"):
                    os.kill(os.getpid(), signal.SIGKILL)

    async def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        if message["do"] != "perform":
            self._tell_call(message)
        match message["do"]:
            case "watch":
                self._touched = Touched()
            case "touched" if self._touched is not None:
                return {"touched": self._touched.all(), "is_proof": self._touched.sees_descriptors}
            case "clock":
                self._clock.enter_context(SkewedClock(message["seconds"]).installed())
            case "close":
                if self._touched is not None:
                    self._touched.look()
                instance, self._instance = self._instance, None
                if instance is not None:
                    await instance.close()
            case "perform":
                procedure = procedure_named(message["procedure"])
                self._tell_call(message)
                return {"came": await procedure(self._target, message["location"], **message["arguments"])}
            case _:
                return await self._call(message, message["run_id"])
        return {}

    def _tell_call(self, message: dict[str, Any]) -> None:
        if message.get("tells_call"):
            self._channel.send(CALLED)

    async def _call(self, message: dict[str, Any], run_id: str) -> dict[str, Any]:
        if self._instance is None:
            self._instance = await self._target.open(message["location"])
        if self._touched is not None:
            self._touched.look()
        match message["do"]:
            case "load_or_create":
                reply = await self._instance.load_or_create(run_id, message["inputs"])
                record = Record.read(reply)
                self._contexts[run_id] = self._instance.context(reply, run_id)
                return {"record": record.to_dict()}
            case "save":
                context = self._contexts.get(run_id)
                if context is None:
                    raise BrokenClause(f"save was {not_called(run_id)}")
                for node, output in message["outputs"].items():
                    context.checkpoint(node, output)
                await self._instance.save(run_id, context)
            case "delete":
                await self._instance.delete(run_id)
            case "acquire" | "renew" | "release":
                began = time.monotonic()
                await self._lease(self._instance.raw, message["do"], run_id, message.get("ttl"))
                return {"lasted": (began, time.monotonic())}
        return {}

    async def _lease(self, store: Any, do: str, run_id: str, ttl: float | None) -> None:
        """Ask for, renew or give up this process's lease of a run; a refused one leaves the lease as it is."""
        match do:
            case "acquire":
                holder = f"process {os.getpid()}"
                self._leases[run_id] = await call_either(store.acquire, run_id, holder, ttl)
            case "renew":
                self._leases[run_id] = await call_either(store.renew, self._leases[run_id], ttl)
            case "release":
                await call_either(store.release, self._leases[run_id])


def name_of(procedure: Procedure | TracingProcedure) -> str:
    """Return the name by which another process finds a procedure. Raises `ValueError` for one that it would not."""
    name = f"{procedure.__module__}:{procedure.__qualname__}"
    if procedure_named(name) is not procedure:
        raise ValueError(f"{name} is no function at the top of its module")
    return name


def procedure_named(name: str) -> Callable[..., Any]:
    """Return the procedure that `name_of` has given this name. Raises `ValueError` for what is none of the suite."""
    module, _, function = name.partition(":")
    if not module.startswith(_OURS) or not function.isidentifier():
        raise ValueError(f"{name} is no procedure of the suite")
    procedure: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return procedure


async def _next(channel: Channel) -> dict[str, Any] | None:
    """Wait for a message without a thread: a process that forks must have only one."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            return channel.receive(0)
        except TimeoutError:
            has_come = asyncio.Event()
            loop.add_reader(channel.fileno(), has_come.set)
            try:
                await has_come.wait()
            finally:
                loop.remove_reader(channel.fileno())


_channels: list[Channel] = []
_ALIVE_SECONDS = 0.05
_told_at = 0.0


def still_alive(**news: Any) -> None:
    """Tell that a call of the store has ended, for a procedure of many calls: each may take the time of one.

    What is told too soon after the last time is not told. May be called in any thread. `news` are told with it.
    """
    global _told_at  # noqa: PLW0603 - there is one for a process, as there is one conversation
    now = time.monotonic()
    if _channels and not _channels[-1].is_of_another and now - _told_at > _ALIVE_SECONDS:
        _told_at = now
        with suppress(BrokenPipeError):
            _channels[-1].send({"alive": True, **news})


def die(words: dict[str, Any]) -> NoReturn:
    """Tell these last words, and be killed by SIGKILL as the next act; for a procedure, in any thread."""
    _channels[-1].send({"dying": words})
    while True:
        os.kill(os.getpid(), signal.SIGKILL)


def speak_over(channel: Channel) -> None:
    """Have `still_alive` and `die` speak over this channel."""
    _channels.append(channel)


async def serve(channel: Channel, target: StoreTarget) -> None:
    """Do what is asked for until the other end hangs up."""
    speak_over(channel)
    await _Child(channel, target).serve()


def main(reads: str, writes: str) -> None:
    """Serve in a fresh interpreter; the arguments are two inherited descriptors, the first message names the target."""
    die_with_parent(os.getppid())
    channel = Channel(int(reads), int(writes), only_here=True)
    start = channel.receive()
    if start is not None:
        asyncio.run(serve(channel, StoreTarget.parse(start["target"])))
    sys.stdout.flush()
    # A store may have left threads behind that would keep the process.
    os._exit(0)
