"""Another process that opens the store under test; started by `HelperProcess` with two descriptors as arguments.

The first message names the target; every other one asks for one call. Replies go over the given descriptors, never
over stdout, which belongs to the store. A message with `die` makes the process kill itself with SIGKILL as its next act
after the acknowledgement is sent.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

from n00dles.context import PipelineContext

from ..channel import Channel
from .instance import Instance
from .records import Record
from .scenario import describe
from .target import StoreTarget
from .touched import Touched

__all__ = ["main"]


class _Child:
    def __init__(self, channel: Channel, target: StoreTarget) -> None:
        self._channel = channel
        self._target = target
        self._instance: Instance | None = None
        self._contexts: dict[str, PipelineContext] = {}
        self._touched: Touched | None = None

    async def serve(self) -> None:
        while (message := await asyncio.to_thread(self._channel.receive)) is not None:
            try:
                reply = await self._answer(message)
            except (Exception, SystemExit) as error:
                self._channel.send({"raised": describe(error)})
                continue
            self._channel.send({"ok": True, **reply})
            if message.get("die"):
                os.kill(os.getpid(), signal.SIGKILL)

    async def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        match message["do"]:
            case "watch":
                self._touched = Touched()
            case "touched" if self._touched is not None:
                return {"touched": self._touched.all(), "is_proof": self._touched.sees_descriptors}
            case "close":
                if self._touched is not None:
                    self._touched.look()
                instance, self._instance = self._instance, None
                if instance is not None:
                    await instance.close()
            case _:
                return await self._call(message, message["run_id"])
        return {}

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
                context = self._contexts[run_id]
                for node, output in message["outputs"].items():
                    context.checkpoint(node, output)
                await self._instance.save(run_id, context)
            case "delete":
                await self._instance.delete(run_id)
        return {}


def main(reads: str, writes: str) -> None:
    """Serve until the other end hangs up; the arguments are the numbers of two inherited descriptors."""
    channel = Channel(int(reads), int(writes))
    start = channel.receive()
    if start is not None:
        asyncio.run(_Child(channel, StoreTarget.parse(start["target"])).serve())
    sys.stdout.flush()
    # A store may have left threads behind that would keep the process.
    os._exit(0)
