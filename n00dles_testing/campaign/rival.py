"""One of two processes that work on the same run: a fresh interpreter, told by a file what to do.

It runs the pipeline of a token on a SQLite file, appends the nodes that it calls to a file, and writes how it ended to
another. The first of the two is held in a node until a file says that it may go on.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import Any

from n00dles.stores.sqlite import SQLiteStateStore

from ..crash.life import Executor, ReferenceExecutor
from ..interpreters import start_interpreter
from ..strategies import ATTEMPTS_VARIABLE, PipelineSpec, build, from_token, to_token
from ..targets import load_target
from .direct import Ended, ended

__all__ = ["RivalError", "main", "rivals_in_processes"]

_WAITS_SECONDS = 1.0
"""A second process that has not called a node or ended after so long is one that waits."""
_LIMIT_SECONDS = 30.0
_RUN_ID = "campaign"


class RivalError(Exception):
    """Two processes did not overlap, or one of them came to no end."""


@dataclass(frozen=True, slots=True)
class _Place:
    """The files by which the two and whoever has started them talk."""

    folder: Path
    role: str

    @property
    def inside(self) -> Path:
        return self.folder / "inside"

    @property
    def release(self) -> Path:
        return self.folder / "release"

    @property
    def begun(self) -> Path:
        return self.folder / f"{self.role}.begun"

    @property
    def calls(self) -> Path:
        return self.folder / f"{self.role}.calls"

    @property
    def result(self) -> Path:
        return self.folder / f"{self.role}.result"

    def called(self) -> list[str]:
        """Return the nodes that were called so far."""
        return self.calls.read_text(encoding="utf-8").splitlines() if self.calls.exists() else []


def rivals_in_processes(spec: PipelineSpec, node: str, executor: str | None, folder: Path) -> tuple[Ended, Ended]:
    """Start two processes on one run, the second while the first is in `node`, and return how both ended.

    Raises `RivalError` if they did not overlap.
    """
    first, second = _Place(folder, "first"), _Place(folder, "second")
    processes: list[Popen[bytes]] = []
    try:
        processes.append(_start(first, spec, node, executor))
        _wait(lambda: first.inside.exists() or processes[0].poll() is not None, _LIMIT_SECONDS)
        if not first.inside.exists():
            raise RivalError(f"the first process never was in {node}")
        processes.append(_start(second, spec, "", executor))
        _wait(lambda: second.begun.exists() or processes[1].poll() is not None, _LIMIT_SECONDS)
        waited = not _wait(lambda: bool(second.called()) or processes[1].poll() is not None, _WAITS_SECONDS)
        first.release.touch()
        for process in processes:
            process.wait(_LIMIT_SECONDS)
    except TimeoutExpired as error:
        raise RivalError(f"one of two processes was not done within {_LIMIT_SECONDS:g} s") from error
    finally:
        for process in processes:
            process.kill()
            process.wait()
    ends = [_read(first), _read(second)]
    ends[1].waited = waited
    return ends[0], ends[1]


def _start(place: _Place, spec: PipelineSpec, node: str, executor: str | None) -> Popen[bytes]:
    request = place.folder / f"{place.role}.json"
    form = {"role": place.role, "spec": to_token(spec), "node": node, "executor": executor}
    request.write_text(json.dumps(form), encoding="utf-8")
    environment = {ATTEMPTS_VARIABLE: str(place.folder / "attempts")}
    return start_interpreter(__name__, [str(request)], environment=environment)


def _wait(until: Callable[[], bool], seconds: float) -> bool:
    ends = time.monotonic() + seconds
    while not until():
        if time.monotonic() > ends:
            return False
        time.sleep(0.01)
    return True


def _read(place: _Place) -> Ended:
    if not place.result.exists():
        raise RivalError(f"the {place.role} process ended without a word; what it printed stands on stderr")
    form = json.loads(place.result.read_text(encoding="utf-8"))
    error = None
    if form["error"] is not None:
        # Of a class of another process only the name is known, and whether it is one of Python's own.
        kind = type(form["error"], (Exception,), {"__module__": form["module"]})
        error = kind(form["message"])
    return Ended(place.called(), form["output"], error)


def main(request: str) -> None:
    """Be one of the two."""
    form = json.loads(Path(request).read_text(encoding="utf-8"))
    place = _Place(Path(request).parent, form["role"])
    executor: Executor = load_target(form["executor"], "executor") if form["executor"] else ReferenceExecutor()
    spec = from_token(form["spec"])
    asyncio.run(_run(place, spec, form["node"], executor))


async def _run(place: _Place, spec: PipelineSpec, node: str, executor: Executor) -> None:
    async def body(name: str, call: Callable[[], Awaitable[Any]]) -> Any:
        with place.calls.open("a", encoding="utf-8") as file:
            file.write(f"{name}\n")
        if name == node and not place.inside.exists():
            place.inside.touch()
            while not place.release.exists():  # noqa: ASYNC110 - it is a file that another process makes
                await asyncio.sleep(0.01)
        return await call()

    store = SQLiteStateStore(place.folder / "run.db")
    place.begun.touch()
    result = await ended(
        executor, build(spec), store, _RUN_ID, inputs=spec.input_values(), body=body, limit=_LIMIT_SECONDS
    )
    await store.aclose()
    error = result.error
    form: Mapping[str, Any] = {
        "output": result.output,
        "error": None if error is None else type(error).__name__,
        "module": "" if error is None else type(error).__module__,
        "message": str(error),
    }
    written = place.result.with_suffix(".part")
    written.write_text(json.dumps(form), encoding="utf-8")
    written.rename(place.result)
