"""What a way of saving does with the files of a state, seen from a process that may die of it.

A state may kill whoever reads it (a map of a file that is too short ends in SIGBUS), hang it, or make it exit. So one
process, a fork that lives long, looks at one state after the other and tells what it sees; it is replaced when it ends.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import warnings
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import IntEnum
from multiprocessing.connection import Connection, Pipe
from typing import Any, NoReturn, Protocol

__all__ = ["NEXT", "Examiner", "Opened", "Seen", "Step"]

NEXT = 99
"""The number of the value that is saved after a crash, to see whether that works. No workload has it."""
_MARGIN = 5.0
_LONG_AGO = (1, 1)
_MESSAGE = 300


class Opened(Protocol):
    """A place that is open for saving and loading numbered values."""

    def load(self) -> Any:
        """Return which value is there. Raises anything if what is there is none."""

    def save(self, number: int) -> None:
        """Save the value of that number in the place of the one before, and return when it is to be kept."""

    def close(self) -> None:
        """Give everything back."""


class Step(IntEnum):
    """What is asked of a state, one after the other: the clauses A1, A3 (twice) and A5 (twice) of a judgement."""

    LOAD = 1
    LOAD_AGAIN = 2
    REOPEN = 3
    SAVE = 4
    LOAD_NEXT = 5


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of one state.

    `values` has what was loaded at each step that returned; after saving, too. `failed` is the step that did not,
    and `how` says how: an exception, a signal, a hang. `wrote` says whether opening, loading and closing have changed
    the files, so that a crash in the middle of that is to be asked about.
    """

    values: dict[Step, Any]
    failed: Step | None = None
    how: str = ""
    wrote: bool = True


class Examiner:
    """Looks at states, by a process of its own. Use it as a context, in a process with one thread and nothing open."""

    def __init__(self, open_at: Callable[[str], Opened], *, time_limit: float = 10.0) -> None:
        self._open_at = open_at
        self._time_limit = time_limit
        self._process = 0
        self._connection: Connection | None = None

    def __enter__(self) -> Examiner:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def examine(self, folder: str, *, last: Step = Step.LOAD_NEXT) -> Seen:
        """Take the files in `folder` through the steps up to `last`; they are changed by that."""
        if self._connection is not None and os.waitpid(self._process, os.WNOHANG) != (0, 0):
            self._connection.close()  # it has ended by itself meanwhile, which says nothing about this state
            self._connection = None
        if self._connection is None:
            self._start()
        assert self._connection is not None
        values: dict[Step, Any] = {}
        wrote = True
        try:
            self._connection.send((folder, last))
            while self._connection.poll(self._time_limit):
                what, told = self._connection.recv()
                if what == "end":
                    return Seen(values, wrote=wrote)
                if what == "wrote":
                    wrote = told
                elif what == "raised":
                    return Seen(values, _next(values, last), told, wrote)
                else:
                    values[what] = told
            how = f"it did not come back within {self._time_limit:g} s"
            self._end(kill=True)
        except (EOFError, OSError):
            how = _ended(self._end())
        return Seen(values, _next(values, last), how, wrote)

    def close(self) -> None:
        """End the process."""
        if self._connection is not None:
            self._end(kill=True)

    def _start(self) -> None:
        self._connection, theirs = Pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that a thread of somebody's may hold a lock
            self._process = os.fork()
        if not self._process:
            self._connection.close()
            _serve(theirs, self._open_at, self._time_limit)
        theirs.close()

    def _end(self, *, kill: bool = False) -> int:
        """Take leave of the process, and return how it ended, as `subprocess` tells it."""
        assert self._connection is not None
        self._connection.close()
        self._connection = None
        if kill:
            with suppress(ProcessLookupError):
                os.kill(self._process, signal.SIGKILL)
        _, status = os.waitpid(self._process, 0)
        return os.waitstatus_to_exitcode(status)


def _next(values: dict[Step, Any], last: Step) -> Step:
    """Return the step after those that have returned."""
    return min(last, Step(len(values) + 1)) if len(values) < len(Step) else last


def _ended(code: int) -> str:
    if code >= 0:
        return f"it ended its process, with exit code {code}"
    return f"its process was killed by {signal.Signals(-code).name}"


def _serve(connection: Connection, open_at: Callable[[str], Opened], time_limit: float) -> NoReturn:
    """Be the process that looks."""
    try:
        _become_quiet()
        while True:
            folder, last = connection.recv()
            signal.alarm(int(time_limit + _MARGIN) + 1)  # in case nobody is there any more to end a hang
            try:
                _look(folder, last, open_at, lambda what, told: connection.send((what, told)))
            except BaseException as error:
                told = " ".join(str(error).replace(f"{folder}/", "").replace(folder, "the folder").split())
                connection.send(("raised", f"{type(error).__name__}: {told[:_MESSAGE]}"))
            else:
                connection.send(("end", None))
            signal.alarm(0)
    except (EOFError, OSError):
        os._exit(0)
    finally:
        os._exit(70)


def _become_quiet() -> None:
    """What a state makes a library print, or dump, is nobody's concern; what it does to the process is told."""
    faulthandler.disable()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nowhere, descriptor)


def _look(folder: str, last: Step, open_at: Callable[[str], Opened], tell: Callable[[Any, Any], None]) -> None:
    _age(folder)
    with _open(open_at, folder) as store:
        tell(Step.LOAD, store.load())
        if last >= Step.LOAD_AGAIN:
            tell(Step.LOAD_AGAIN, store.load())
    tell("wrote", _is_young(folder))
    if last >= Step.REOPEN:
        with _open(open_at, folder) as store:
            tell(Step.REOPEN, store.load())
    if last >= Step.SAVE:
        with _open(open_at, folder) as store:
            store.save(NEXT)
            tell(Step.SAVE, store.load())
        with _open(open_at, folder) as store:
            tell(Step.LOAD_NEXT, store.load())


@contextmanager
def _open(open_at: Callable[[str], Opened], folder: str) -> Any:
    store = open_at(folder)
    try:
        yield store
    finally:
        store.close()


def _age(folder: str) -> None:
    """Make all files old, so that whatever is changed from now on is younger."""
    for path in _paths(folder):
        os.utime(path, _LONG_AGO, follow_symlinks=False)


def _is_young(folder: str) -> bool:
    """Whether any file was changed, made, renamed or removed since."""
    return any(os.lstat(path).st_mtime != _LONG_AGO[1] for path in _paths(folder))


def _paths(folder: str) -> list[str]:
    found = [folder]
    for inside, folders, files in os.walk(folder):
        found += [os.path.join(inside, name) for name in folders + files]
    return found
