"""Who called: the innermost line outside of libraries, for messages about what a test must not do."""

from __future__ import annotations

import asyncio
import functools
import linecache
import os
import sys
import sysconfig
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

__all__ = ["Caller", "find_caller", "is_library", "possible_callers"]

_INSTALLED = ("site-packages", "dist-packages")
_OWN_CODE = ("<stdin>", "<string>", "<doctest")


@dataclass(frozen=True, slots=True)
class Caller:
    """A line of the user's code: `file` is as in tracebacks, but relative to the working folder if it lies in it."""

    file: str
    line: int
    function: str
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


def find_caller(frame: FrameType | None) -> Caller | None:
    """Return the innermost line outside of libraries, from `frame` outwards; None if it cannot be told."""
    found = possible_callers(frame)
    return found[0] if len(found) == 1 else None


def possible_callers(frame: FrameType | None) -> list[Caller]:
    """Return the innermost line outside of libraries, from `frame` outwards; or those from which it may be called.

    A thread or a task that a library has started has no such line. Whoever started it then waits in an event loop, and
    every task that does may be it; if there is none, it is the main thread.
    """
    own = _innermost(_up_to_the_loop(frame))
    if own is not None:
        return [own]
    stacks = sys._current_frames()
    waiting = {found for task in _tasks(stacks) if (found := _innermost(_of_coroutine(task.get_coro()))) is not None}
    if not waiting and (found := _innermost(_outwards(stacks.get(threading.main_thread().ident or 0)))) is not None:
        waiting = {found}
    return sorted(waiting, key=str)


def _innermost(frames: Iterator[FrameType]) -> Caller | None:
    for frame in frames:
        code = frame.f_code
        if not is_library(code.co_filename):
            text = linecache.getline(code.co_filename, frame.f_lineno).strip()
            return Caller(_shown(code.co_filename), frame.f_lineno, code.co_qualname, text)
    return None


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _up_to_the_loop(frame: FrameType | None) -> Iterator[FrameType]:
    for outer in _outwards(frame):
        if _loop_of(outer) is not None:
            return
        yield outer


def _of_coroutine(coroutine: Any) -> Iterator[FrameType]:
    frames: list[FrameType] = []
    while coroutine is not None:
        for kind, awaited in (("cr", "cr_await"), ("gi", "gi_yieldfrom"), ("ag", "ag_await")):
            frame = getattr(coroutine, f"{kind}_frame", None)
            if frame is not None:
                frames.append(frame)
                coroutine = getattr(coroutine, awaited)
                break
        else:
            break
    return reversed(frames)


def _tasks(stacks: dict[int, FrameType]) -> Iterator[asyncio.Task[Any]]:
    for stack in stacks.values():
        for frame in _outwards(stack):
            if (loop := _loop_of(frame)) is not None:
                yield from asyncio.all_tasks(loop)


def _loop_of(frame: FrameType) -> asyncio.AbstractEventLoop | None:
    """Return the event loop that this frame runs. One that is written in C has the frame of a runner only."""
    if frame.f_code.co_name not in ("run_forever", "run"):
        return None
    owner = frame.f_locals.get("self")
    if isinstance(owner, asyncio.Runner):
        return owner.get_loop()
    return owner if isinstance(owner, asyncio.AbstractEventLoop) else None


@functools.lru_cache(maxsize=1024)
def is_library(file: str) -> bool:
    """Whether a file is the standard library's, an installed package's, or ours."""
    if file.startswith("<"):
        return not file.startswith(_OWN_CODE)
    return file.startswith(_library_folders()) or any(part in _INSTALLED for part in Path(file).parts)


@functools.lru_cache(maxsize=1)
def _library_folders() -> tuple[str, ...]:
    here = Path(__file__).parent
    folders = {sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    # A standard library that lies in a virtual environment's base is found by a module of it.
    folders |= {str(Path(os.__file__).parent), str(here), str(here.parent / "n00dles")}
    return tuple(folder + os.sep for folder in folders)


def _shown(file: str) -> str:
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return file
