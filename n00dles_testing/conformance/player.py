"""Steps on a store, as plain data that another process can be given: `{"do": "save", "run": …, "outputs": …}`.

What is done is `load_or_create` (with `inputs`), `save` (with `outputs`), `delete`, and `close`. The first step opens
the store. A step may name its `worker`: each works on contexts of its own.
"""

from __future__ import annotations

from typing import Any

from n00dles.context import PipelineContext

from .instance import Instance
from .records import Record
from .scenario import describe
from .target import StoreTarget

__all__ = ["NotCalledError", "Player", "Step", "not_called"]

Step = dict[str, Any]


class NotCalledError(Exception):
    """A step could not be done, by nobody's fault but that of a step before it."""


def not_called(run_id: str) -> str:
    """Say why a run was not saved: a caller whose load has raised has nothing to save."""
    return f"not called, since the load of {run_id!r} before it had failed"


class Player:
    """Does steps on one store, which the first of them opens; `close` closes it, and the next step opens it again."""

    def __init__(self, target: StoreTarget, location: str | None) -> None:
        self._target = target
        self._location = location
        self._instance: Instance | None = None
        self._contexts: dict[tuple[str, str], PipelineContext] = {}

    async def outcome(self, step: Step) -> dict[str, Any]:
        """Do a step; return what came of it, see `play`."""
        try:
            return await self.do(step)
        except NotCalledError as error:
            return {"raised": str(error), "not_called": str(error)}
        except Exception as error:
            return {"raised": describe(error)}

    async def do(self, step: Step) -> dict[str, Any]:
        """Do a step; return what came of it. Raises what the store raises."""
        if step["do"] == "close":
            await self.close()
            return {}
        if self._instance is None:
            self._instance = await self._target.open(self._location)
        run_id = step["run"]
        key = (run_id, step.get("worker", ""))
        match step["do"]:
            case "load_or_create":
                reply = await self._instance.load_or_create(run_id, dict(step["inputs"]))
                record = Record.read(reply)
                self._contexts[key] = self._instance.context(reply, run_id)
                return {"record": record.to_dict()}
            case "save":
                context = self._contexts.get(key)
                if context is None:
                    raise NotCalledError(not_called(run_id))
                for node, output in step["outputs"].items():
                    if node not in context.completed:  # it is when the same context is saved again
                        context.checkpoint(node, output)
                await self._instance.save(run_id, context)
            case "delete":
                await self._instance.delete(run_id)
        return {}

    async def close(self) -> None:
        """Close the store, if it is open."""
        instance, self._instance = self._instance, None
        if instance is not None:
            await instance.close()
