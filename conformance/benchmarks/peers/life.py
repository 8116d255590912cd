"""The process of one subject: `python -P life.py PROGRAM` loads a program, and lives what is asked of it.

It runs in the subject's own environment, so it needs the standard library alone. A request is a line of JSON on stdin:
`folder` (where to keep everything), `nodes` (how many the pipeline has) and `act`:

- "run": run the pipeline from its start to its end;
- "die": the same, but the process is killed by SIGKILL in the last node;
- "resume": go on with that run, in another process and the same folder.

It answers with a line when the clock starts, and one with the seconds, the outputs that the store has and the nodes
that were called. Opening the store, making its tables and building the pipeline are not in the time, nor is the import.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TextIO

RUN_ID = "measured"
SIZE = 1000
"""Characters of an output."""


def main(path: str) -> None:
    """Answer each request on stdin."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a framework prints what it likes
    module = _loaded(path)
    _say(answers, {"is_ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = _lived(module, Path(request["folder"]), request["nodes"], request["act"], answers)
        except Exception as error:
            reply = {"error": " ".join(f"{type(error).__name__}: {error}".split())[:500]}
        _say(answers, reply)


def _loaded(path: str) -> Any:
    """Import a program by its file: its folder must not be searched for the packages that it names."""
    specification = importlib.util.spec_from_file_location("measured_program", path)
    if specification is None or specification.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(specification)
    sys.modules["measured_program"] = module
    specification.loader.exec_module(module)
    return module


def _lived(module: Any, folder: Path, nodes: int, act: str, answers: TextIO) -> dict[str, Any]:
    called: list[int] = []
    is_resume = act == "resume"
    if is_resume:  # the first run of a process finds what a framework imports late, in a folder beside
        (folder / "warm").mkdir()
        _opened(module, folder / "warm", _node([], 0), is_warmed=True).close()
    program = _opened(module, folder, _node(called, nodes if act == "die" else 0), is_warmed=not is_resume)
    try:
        pipeline = program.build(nodes)
        called.clear()
        gc.collect()
        _say(answers, {"has_begun": True})
        started = time.perf_counter()
        (program.resume if is_resume else program.run)(pipeline, RUN_ID)
        seconds = time.perf_counter() - started
        return {"seconds": seconds, "kept": program.kept(RUN_ID), "called": len(called)}
    finally:
        program.close()


def _opened(module: Any, folder: Path, output: Callable[[int], str], *, is_warmed: bool) -> Any:
    """Return a program with its store; `is_warmed` says that it runs two nodes first, so that its tables are there."""
    for name in getattr(module, "PUT_INTO_WAL", ()):
        with closing(sqlite3.connect(folder / name)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")  # the file keeps it
    program = module.Program(folder, output)
    if is_warmed:
        program.run(program.build(2), "warm")
    return program


def _node(called: list[int], deadly: int) -> Callable[[int], str]:
    """Return what every node calls with its number from 0 on: no two outputs are the same text."""

    def output(number: int) -> str:
        called.append(number)
        if number + 1 == deadly and number > 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return f"{number:08}".ljust(SIZE, "x")

    return output


def _say(answers: TextIO, reply: dict[str, Any]) -> None:
    answers.write(json.dumps(reply) + "\n")
    answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
    os._exit(0)  # threads that a framework has left do not keep it
