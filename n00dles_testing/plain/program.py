"""A home-made loop of another interpreter: what it needs, and what we need, are not installed together.

The life of a run is a process of ours, as for any other loop. It starts the other interpreter, which tells of each call
and each save before it goes on (`far_end`); a kill of ours is the end of both.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from n00dles.errors import ConfigurationError

from .functions import PlainFunctions
from .place import Stored
from .writes import pass_moment

__all__ = ["Program", "ProgramError"]

_FAR_END = Path(__file__).with_name("far_end.py")


class ProgramError(Exception):
    """The program has raised an error, or its interpreter has ended without a result; the message says which."""


class Program(PlainFunctions):
    """A home-made loop, or a framework, that is installed in another environment, as a subject.

        subject = Program(
            "venv/bin/python", "flow.py:run", ["research", "write", "publish"], stored=lambda folder: rows(folder)
        )

    `python` is the interpreter, `program` the file and the function that it is to call, with the inputs by name and
    the path of a folder, as a text, by `folder`. `nodes` are names of functions in that file. The other environment
    needs nothing of n00dles. `stored` is called here, and not there; for it and the rest see `PlainFunctions`.

    Inputs have to be JSON. What functions get and return is compared as JSON where it is just that, else by its `repr`.
    Raises `ConfigurationError`.
    """

    def __init__(
        self,
        python: str | os.PathLike[str],
        program: str,
        nodes: Sequence[str],
        *,
        needs: Mapping[str, Sequence[str]] | None = None,
        routes: Mapping[str, Sequence[str]] | None = None,
        stored: Stored | None = None,
        name: str | None = None,
    ) -> None:
        path, _, function = program.rpartition(":")
        if not Path(path).is_file():
            raise ConfigurationError(f"program={program!r} names no file; it has to be path/to/file.py:function.")
        interpreter = shutil.which(os.fspath(python))
        if interpreter is None:
            raise ConfigurationError(f"python={os.fspath(python)!r} is no interpreter that can be started.")
        stubs = {each: _stub(each) for each in nodes}
        job = {"program": os.path.abspath(path), "function": function, "nodes": list(nodes)}

        def loop(folder: Path, **inputs: Any) -> Any:
            given = {**job, "folder": str(folder), "inputs": {**inputs, "folder": str(folder)}}
            return _Life(stubs).output(os.path.abspath(interpreter), given)

        super().__init__(loop, list(stubs.values()), needs=needs, routes=routes, stored=stored, name=name or function)


class _Life:
    """One life of the other interpreter, seen from here. Each of its calls is made here as well, in a thread."""

    def __init__(self, stubs: Mapping[str, Callable[..., Any]]) -> None:
        self._stubs = stubs
        self._ends: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self._fault: BaseException | None = None

    def output(self, python: str, job: Mapping[str, Any]) -> Any:
        """Run it to its end, and return its output. Raises `ProgramError`."""
        they_read, we_write = os.pipe()
        we_read, they_write = os.pipe()
        with os.fdopen(we_read, encoding="utf-8") as said, os.fdopen(we_write, "w", encoding="utf-8") as self._to:
            # -I: nothing of this environment is to be found there. It stays in our process group, to be ended with us.
            self._process = subprocess.Popen(
                [python, "-I", str(_FAR_END), str(they_read), str(they_write), json.dumps(job)],
                stdin=subprocess.DEVNULL,
                stdout=2,
                pass_fds=(they_read, they_write),
            )
            os.close(they_read)
            os.close(they_write)
            try:
                end = next(filter(None, (self._hear(json.loads(line)) for line in said)), None)
            finally:
                self._process.kill()
                code = self._process.wait()
        if self._fault is not None:
            raise self._fault
        if end is None:
            raise ProgramError(f"{job['program']}: its interpreter ended with {code}, and gave no result.")
        if end["kind"] == "failed":
            raise ProgramError(end["error"])
        return end["output"]

    def _hear(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Do what a message asks for, and return it if it is the last one."""
        if message["kind"] == "call":
            self._ends[message["id"]] = queue.SimpleQueue()
            threading.Thread(target=self._call, args=(message,), daemon=True).start()
        elif message["kind"] == "ended":
            self._ends[message["call"]].put(message)
        elif message["kind"] == "writes":
            pass_moment()
            self.go_on(message)
        else:
            return message
        return None

    def _call(self, message: dict[str, Any]) -> None:
        call = _Call(self, message, self._ends[message["id"]])
        _current.set(call)
        try:
            self._stubs[message["node"]](**message["arguments"])
        except ProgramError:  # the function has raised that there, too
            pass
        except BaseException as fault:
            self._fault = fault
            self._process.kill()
            return
        self.go_on(call.last)

    def go_on(self, message: Mapping[str, Any]) -> None:
        """Reply to a message: its thread goes on there."""
        with self._lock:
            self._to.write(f"{message['id']}\n")
            self._to.flush()


class _Call:
    """One call of a function of the program. `last` is the message that waits for a reply."""

    def __init__(self, life: _Life, message: dict[str, Any], ends: queue.SimpleQueue[dict[str, Any]]) -> None:
        self.last = message
        self._life = life
        self._ends = ends

    def begin(self) -> None:
        """Have the function begin there."""
        self._life.go_on(self.last)

    def end(self) -> Any:
        """Wait for its end there, and return its output. Raises `ProgramError` if it has raised."""
        self.last = self._ends.get()
        if "error" in self.last:
            raise ProgramError(self.last["error"])
        return self.last["output"]


_current: ContextVar[_Call] = ContextVar("n00dles_testing_call_of_a_program")


def _stub(name: str) -> Callable[..., Any]:
    """Return a function that stands for one of the program; it is called here while that is called there."""

    def stub(**arguments: Any) -> Any:
        call = _current.get()
        call.begin()
        output = call.end()
        return output  # noqa: RET504 - a line of its own, to be killed in the middle

    stub.__name__ = stub.__qualname__ = name
    return stub
