"""The other end of `program`, in an interpreter that may have nothing of ours: it runs the program, and tells of it.

Run by its path, with the standard library alone. Each call of a listed function, and each moment at which the program
writes, is told to the near end, and goes on when that says so: whoever is killed there leaves this process stopped at
just that moment, to be killed with it.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import itertools
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["main"]

_DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of Linux."""
_inside: ContextVar[bool] = ContextVar("inside", default=False)


class _NearEnd:
    """Says something, and waits until the near end says to go on. Safe to use from several threads."""

    def __init__(self, reads: int, writes: int) -> None:
        self._from = os.fdopen(reads, encoding="utf-8")
        self._to = os.fdopen(writes, "w", encoding="utf-8")
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, queue.SimpleQueue[None]] = {}
        threading.Thread(target=self._listen, daemon=True).start()

    def say(self, kind: str, **what: Any) -> None:
        """Say something that needs no reply."""
        with self._lock:
            self._to.write(json.dumps({"kind": kind, **what}) + "\n")
            self._to.flush()

    def ask(self, kind: str, **what: Any) -> int:
        """Say something, wait for the reply, and return the number that it had."""
        number = next(self._numbers)
        replied: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._waiting[number] = replied
        self.say(kind, id=number, **what)
        replied.get()
        return number

    def _listen(self) -> None:
        for line in self._from:
            self._waiting.pop(json.loads(line)).put(None)
        os.kill(os.getpid(), signal.SIGKILL)  # the near end is dead


def main(reads: str, writes: str, job: str) -> None:
    """Run one life of the program: `job` names it, its functions and its inputs, in JSON."""
    _die_with_parent()
    near = _NearEnd(int(reads), int(writes))
    wanted = json.loads(job)
    try:
        interception, watching = _ours("interception"), _ours("writes")
        program = _loaded(Path(wanted["program"]), "program")
        handlers = {
            function: _handler(near, name, function, interception.copy_of(function))
            for name in wanted["nodes"]
            for function in [getattr(program, name)]
        }
        with (
            interception.intercepted(handlers),
            watching.watching_writes(Path(wanted["folder"]), partial(_moment, near)),
        ):
            output = getattr(program, wanted["function"])(**wanted["inputs"])
            if inspect.isawaitable(output):
                output = asyncio.run(_awaited(output))
    except Exception as error:
        near.say("failed", error=f"{type(error).__name__}: {error}")
    else:
        near.say("finished", output=_told(output))


def _moment(near: _NearEnd) -> None:
    if not _inside.get():  # what a function writes is its own effect
        near.ask("writes")


def _handler(near: _NearEnd, name: str, function: Callable[..., Any], body: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(function)

    @contextmanager
    def told(args: tuple[Any, ...], named: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Tell of a call, and in the end of what the block has put into the dict that it gets, or of its error."""
        arguments = signature.bind(*args, **named).arguments
        call = near.ask("call", node=name, arguments={key: _told(value) for key, value in arguments.items()})
        token, how = _inside.set(True), dict[str, Any]()
        try:
            yield how
        except Exception as error:
            how["error"] = f"{type(error).__name__}: {error}"
            raise
        finally:
            _inside.reset(token)
            if how:
                near.ask("ended", call=call, **how)

    if inspect.iscoroutinefunction(function):

        async def called_async(*args: Any, **named: Any) -> Any:
            with told(args, named) as how:
                output = await body(*args, **named)
                how["output"] = _told(output)
            return output

        return called_async

    def called(*args: Any, **named: Any) -> Any:
        with told(args, named) as how:
            output = body(*args, **named)
            how["output"] = _told(output)
        return output

    return called


async def _awaited(work: Any) -> Any:
    return await work


def _told(value: Any) -> Any:
    """Return a value as JSON, if JSON has exactly that; else what it shows of itself, which tells its type."""
    try:
        if repr(json.loads(json.dumps(value))) == repr(value):
            return value
    except (TypeError, ValueError, RecursionError):
        pass
    return repr(value)


def _ours(name: str) -> ModuleType:
    """Load a module of this folder that needs the standard library alone, without the packages around it."""
    return _loaded(Path(__file__).with_name(f"{name}.py"), f"n00dles_testing.plain.{name}")


def _loaded(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _die_with_parent() -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
