"""The process of a subject, from outside: it is asked, and given a limited time to answer."""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from .subjects import Subject

__all__ = ["DiedError", "Process", "TooSlowError"]

LIFE = Path(__file__).with_name("life.py")
_SETTING_UP = 180.0
"""Seconds that an import, and making tables and pipeline, may take."""
_QUIET = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "LANGSMITH_TRACING": "false",
    "OTEL_SDK_DISABLED": "true",
    "PYTHONUNBUFFERED": "1",
}
"""No subject is to spend its time on telling others of the run."""


class TooSlowError(Exception):
    """It has not answered in time, and was killed; the message says in which."""


class DiedError(Exception):
    """It could not do what was asked, or ended; the message is what it said, and `signal` what killed it."""

    def __init__(self, message: str, signal: int = 0) -> None:
        super().__init__(message)
        self.signal = signal


class Process:
    """A process that has imported a subject's program and lives what is asked of it, see `life`.

    Use it as a context manager: at its end the process is killed.
    """

    def __init__(self, subject: Subject, home: Path) -> None:
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - it is read when the process has ended
        self._answers = b""
        self._child = subprocess.Popen(
            [subject.python, "-P", str(LIFE), str(subject.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            bufsize=0,
            cwd=home,
            env={**os.environ, **_QUIET, "HOME": str(home)},
        )
        try:
            self._answer(_SETTING_UP)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def lived(self, folder: Path, nodes: int, act: str, limit: float) -> dict[str, Any]:
        """Have it live one run, and return its answer. `limit` is in seconds, for the run itself.

        Raises `TooSlowError`, after which there is no process any more, and `DiedError`.
        """
        assert self._child.stdin is not None
        request = json.dumps({"folder": str(folder), "nodes": nodes, "act": act})
        try:
            self._child.stdin.write(request.encode() + b"\n")
        except BrokenPipeError:
            self._ended()
        answer = self._answer(_SETTING_UP)
        if "has_begun" in answer:
            answer = self._answer(limit)
        if "error" in answer:
            raise DiedError(answer["error"])
        return answer

    def _answer(self, limit: float) -> dict[str, Any]:
        assert self._child.stdout is not None
        end = time.monotonic() + limit
        while b"\n" not in self._answers:
            ready, _, _ = select.select([self._child.stdout], [], [], max(end - time.monotonic(), 0))
            if not ready:
                self.close()
                raise TooSlowError(f"not within {limit:g} s")
            if not (read := os.read(self._child.stdout.fileno(), 1 << 16)):
                self._ended()
            self._answers += read
        line, _, self._answers = self._answers.partition(b"\n")
        return dict(json.loads(line))

    def _ended(self) -> None:
        code = self._child.wait()
        self._log.seek(0)
        said = self._log.read().decode(errors="replace").strip().splitlines() or [f"it ended with {code}"]
        raise DiedError(said[-1][:500], signal=-min(code, 0))

    def close(self) -> None:
        """Kill the process, if it is still there."""
        self._child.kill()
        self._child.wait()
        for stream in (self._child.stdin, self._child.stdout, self._log):
            if stream is not None:
                stream.close()
