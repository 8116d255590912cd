"""A node that fails in the first life only: the run goes on from there, and calls nothing before it again (E10).

The explorer needs a run that ends well when nobody disturbs it, so this is tried beside it, in two processes.
`python -m conformance.executors.failing TARGET FOLDER [FAILS]` is one of them; it prints what it did, as JSON.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from n00dles_testing.plain import PlainFunctions
from n00dles_testing.plain.interception import copy_of, intercepted
from n00dles_testing.targets import load_target

from .environments import ROOT
from .nodes import INPUTS
from .subjects import Subject

__all__ = ["failed_and_resumed", "judged", "main"]

FAILS = "article"
BEFORE = ["facts", "images", "outline"]
"""What has been called before it, sorted: two of them run side by side."""
AFTER = [FAILS, "online", "archive"]

Life = dict[str, Any]


def failed_and_resumed(subject: Subject, python: str) -> dict[str, Any]:
    """Live both lives of a subject, and return what E10 says of them."""
    with tempfile.TemporaryDirectory(prefix="n00dles-failing-") as folder:
        return judged(*(_life(subject, python, folder, *fails) for fails in ([FAILS], [])))


def _life(subject: Subject, python: str, folder: str, *fails: str) -> Life:
    command = [python, "-P", "-m", "conformance.executors.failing", subject.target, folder, *fails]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    lines = done.stdout.strip().splitlines()
    try:
        return dict(json.loads(lines[-1]))
    except (IndexError, ValueError):
        return {"calls": [], "error": f"its process ended with {done.returncode}: {done.stderr.strip()[-300:]}"}


def judged(first: Life, second: Life) -> dict[str, Any]:
    """Return the verdict, the reason and the findings, as the explorer does for a clause."""
    story = [_told(1, first), _told(2, second)]
    if "error" not in first or sorted(first["calls"]) != sorted([*BEFORE, FAILS]):
        return {"verdict": "VACUOUS", "reason": f"`{FAILS}` did not fail as it should: {story[0]}", "scenarios": 0}
    again = [name for name in second["calls"] if name in BEFORE]
    fault = ""
    if again:
        fault = f"`{FAILS}` had failed, and the resume called {', '.join(f'`{name}`' for name in again)} again"
    elif "error" in second:
        fault = f"`{FAILS}` had failed, and the run could not be resumed: {second['error']}"
    elif second["calls"] != AFTER:
        fault = f"`{FAILS}` had failed, and the resume called {', '.join(second['calls']) or 'nothing'}"
    findings = [{"clause": "E10", "message": f"{fault}.", "story": story, "replay": None}] if fault else []
    return {"verdict": "FAIL" if fault else "PASS", "reason": "", "scenarios": 1, "findings": findings}


def _told(number: int, life: Life) -> str:
    end = f"raised {life['error']}" if "error" in life else f"returned {life['output']!r}"
    return f"life {number}   {' '.join(life['calls']) or 'called nothing'}   {end}"


def main(target: str, folder: str, fails: str = "") -> None:
    """Be one life: call the loop of a subject, and print what it called and how it ended."""
    subject: PlainFunctions = load_target(target, "pipeline")
    calls: list[str] = []
    handlers = {
        node.function: partial(_called, calls, copy_of(node.function), name == fails)
        for name, node in subject.nodes.items()
    }
    with intercepted(handlers):
        try:
            output = subject.loop(folder=Path(folder), **INPUTS)
            end = {"output": asyncio.run(_awaited(output)) if inspect.isawaitable(output) else output}
        except Exception as error:
            end = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps({"calls": calls, **end}), flush=True)


def _called(calls: list[str], body: Callable[..., Any], is_failing: bool, *args: Any, **named: Any) -> Any:
    calls.append(body.__name__)
    if is_failing:
        raise RuntimeError("the model refuses")
    return body(*args, **named)


async def _awaited(work: Any) -> Any:
    return await work


if __name__ == "__main__":
    main(*sys.argv[1:])
