"""Whether anything can be traced here."""

from __future__ import annotations

import os
import tempfile

from .calls import TracedCall
from .machines import MACHINES, this_machine
from .running import CannotTraceError, trace

__all__ = ["why_not"]

_answers: dict[int, str | None] = {}


def why_not() -> str | None:
    """Why nothing can be traced here, in a sentence; None if tracing works.

    Tries it once in each process: a child writes into a folder for temporary files, and its write must be seen.
    """
    process = os.getpid()
    if process not in _answers:
        _answers[process] = _try()
    return _answers[process]


def _try() -> str | None:
    if this_machine() is None:
        names = " or ".join(machine.name for machine in MACHINES)
        return f"Tracing system calls takes 64 bit Linux on {names}; this is {_this()}."
    word = b"seen"
    try:
        with tempfile.TemporaryDirectory(prefix="n00dles-trace-", ignore_cleanup_errors=True) as folder:
            path = os.path.join(folder, "file")
            trial = trace(lambda: _write(path, word), folder, time_limit=10)
    except CannotTraceError as error:
        return str(error)
    except OSError as error:
        return f"A child that only writes a file into a folder for temporary files could not be traced: {error}"
    if trial.timed_out or trial.status != 0:
        return f"A traced child that only writes a file did not end well (status {trial.status})."
    if not any(
        isinstance(call, TracedCall) and call.data == word and call.result == len(word) for call in trial.events
    ):
        return "A traced child wrote a file, and its write was not seen."
    return None


def _write(path: str, word: bytes) -> None:
    with open(path, "wb", 0) as file:
        file.write(word)


def _this() -> str:
    system = os.uname() if hasattr(os, "uname") else None
    return f"{system.sysname} on {system.machine}" if system is not None else os.name
