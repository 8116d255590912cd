"""The world outside a run: it remembers how often a node has really been called, whatever happened to the caller.

A generated node that fails its first n attempts asks here which attempt this is. A process that is killed takes its
memory with it, so for lives in several processes the count is in a file:

    N00DLES_ATTEMPTS_FILE=/tmp/run-1.attempts      one file a run, in the environment of all its lives

or, for lives in one process, in memory:

    with counted_by(AttemptsInMemory()):
        ...                                        every life of one run
"""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Protocol

from n00dles.errors import ConfigurationError

__all__ = ["ATTEMPTS_VARIABLE", "Attempts", "AttemptsFile", "AttemptsInMemory", "counted_by", "current_attempts"]

ATTEMPTS_VARIABLE = "N00DLES_ATTEMPTS_FILE"


class Attempts(Protocol):
    """Counts the calls of nodes."""

    def count(self, node: str) -> int:
        """Note a call, and return how many there have been, this one included."""


class AttemptsInMemory:
    """Counts as long as this object lives; safe for several threads."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def count(self, node: str) -> int:
        """Note a call, and return how many there have been."""
        with self._lock:
            self.counts[node] += 1
            return self.counts[node]


class AttemptsFile:
    """Counts in a file of one line a call, so that the count outlives every process. Lines are appended whole."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def count(self, node: str) -> int:
        """Note a call, and return how many there have been."""
        line = json.dumps(node).encode() + b"\n"
        file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, line)
            seen = os.pread(file, os.fstat(file).st_size, 0)
        finally:
            os.close(file)
        return seen.splitlines(keepends=True).count(line)

    @property
    def counts(self) -> Counter[str]:
        """How often each node has been called."""
        lines = self.path.read_bytes().splitlines() if self.path.exists() else []
        return Counter(json.loads(line) for line in lines)


_current: ContextVar[Attempts | None] = ContextVar("n00dles_testing_attempts", default=None)


@contextmanager
def counted_by(attempts: Attempts) -> Iterator[None]:
    """Have `attempts` count the calls of generated nodes inside; threads and tasks started inside are included."""
    token = _current.set(attempts)
    try:
        yield
    finally:
        _current.reset(token)


def current_attempts(otherwise: Attempts | None) -> Attempts:
    """Return what counts here: that of `counted_by`, the file of the environment, or `otherwise`.

    Raises `ConfigurationError` if there is none of them: a count that dies with the process would let a resumed node
    meet another world than the first life did.
    """
    current = _current.get()
    if current is not None:
        return current
    path = os.environ.get(ATTEMPTS_VARIABLE)
    if path:
        return AttemptsFile(path)
    if otherwise is None:
        raise ConfigurationError(
            "a generated node fails its first attempts, and nothing that outlives this process counts them: set "
            f"{ATTEMPTS_VARIABLE} to the path of a file of this run, in the environment of all its lives."
        )
    return otherwise
