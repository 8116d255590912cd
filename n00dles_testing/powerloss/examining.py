"""What a way of saving does with the files of a state, seen from a process that may die of it.

A state may kill whoever reads it (a map of a file that is too short ends in SIGBUS), hang it, or make it exit. So one
process, a fork that lives long, looks at one state after the other and tells what it sees; it is replaced when it ends.
So it is when a state makes it start a process that it leaves running: both are ended before the next state.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import IntEnum
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, NoReturn, Protocol

from .left_running import Kept

__all__ = ["NEXT", "Examiner", "Opened", "Seen", "Step"]

NEXT = 99
"""The number of the value that is saved after a crash, to see whether that works. No workload has it."""
_MARGIN = 5.0
_TIME_TO_WARM_UP = 60.0
_TIME_TO_DIE = 1.0
_LOOKS_EVERY = 1.0
_YOUNG = 1_000_000_000
"""Nanoseconds. What was changed so shortly ago is made older, else a further change need not show in its time."""
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
    """What is asked of a state: the questions of `judging`, one after the other."""

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

    def __init__(
        self,
        open_at: Callable[[str], Opened],
        *,
        time_limit: float = 10.0,
        warm_up: Callable[[], object] = lambda: None,
        on_wait: Callable[[], object] = lambda: None,
    ) -> None:
        """Each step may take `time_limit` seconds.

        `warm_up` is called first in each process, and has a time of its own: what is imported then is no part of a
        step. `on_wait` is called every second of waiting.
        """
        self._open_at = open_at
        self._time_limit = time_limit
        self._warm_up = warm_up
        self._on_wait = on_wait
        self._kept: Kept | None = None
        self._connection: Connection | None = None

    def __enter__(self) -> Examiner:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def examine(self, folder: str, *, last: Step = Step.LOAD_NEXT) -> Seen:
        """Take the files in `folder` through the steps up to `last`; they are changed by that.

        Nothing that was started for that is running when this returns. Raises `RuntimeError` if the process that does
        it does not start, and `StillRunningError` if something cannot be ended.
        """
        if self._kept is not None and self._kept.news.poll():
            self._end()  # it has ended by itself meanwhile, which says nothing about this state
        if self._kept is None:
            self._start()
        seen = self._examined(folder, last)
        if self._kept is not None and self._kept.has_company():
            self._end()
        return seen

    def _examined(self, folder: str, last: Step) -> Seen:
        assert self._connection is not None
        values: dict[Step, Any] = {}
        wrote = True
        try:
            self._connection.send((folder, last))
            while self._hears_within(self._time_limit):
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
            self._end()
        except (EOFError, OSError):
            how = _ended(self._end(patience=_TIME_TO_DIE))
        return Seen(values, _next(values, last), how, wrote)

    def close(self) -> None:
        """End the process."""
        if self._kept is not None:
            self._end()

    def _start(self) -> None:
        self._connection, theirs = Pipe()
        self._kept = Kept(lambda: _serve(theirs, self._open_at, self._time_limit, self._warm_up), ours=self._connection)
        theirs.close()
        try:
            is_ready = self._hears_within(_TIME_TO_WARM_UP) and self._connection.recv()
            how = f"it was not ready within {_TIME_TO_WARM_UP:g} s"
        except (EOFError, OSError):
            is_ready, how = False, _ended(self._end(patience=_TIME_TO_DIE))
        if not is_ready:
            self.close()
            raise RuntimeError(f"the process that opens what a power loss has left did not start: {how}")

    def _hears_within(self, seconds: float) -> bool:
        """Wait for the next word of the process. Raises EOFError if it has ended, whoever may still hold its end."""
        assert self._connection is not None
        assert self._kept is not None
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            self._on_wait()
            ready = wait([self._connection, self._kept.news], min(left, _LOOKS_EVERY))
            if self._connection in ready:
                return True
            if ready:
                raise EOFError
        return False

    def _end(self, *, patience: float = 0.0) -> int:
        """End the process if it has not ended, with all that it has left; return how, as `subprocess` tells it."""
        assert self._connection is not None
        assert self._kept is not None
        kept, self._kept = self._kept, None
        self._connection.close()
        return kept.end(patience=patience)


def _next(values: dict[Step, Any], last: Step) -> Step:
    """Return the step after those that have returned."""
    return min(last, Step(len(values) + 1)) if len(values) < len(Step) else last


def _ended(code: int) -> str:
    if code >= 0:
        return f"it ended its process, with exit code {code}"
    return f"its process was killed by {signal.Signals(-code).name}"


def _serve(
    connection: Connection, open_at: Callable[[str], Opened], time_limit: float, warm_up: Callable[[], object]
) -> NoReturn:
    """Be the process that looks."""

    def set_alarm() -> None:
        """Have a hang in the next step ended, in case nobody is there any more to do it."""
        signal.alarm(int(time_limit + _MARGIN) + 1)

    def tell(what: Any, told: Any) -> None:
        connection.send((what, told))
        set_alarm()

    try:
        _become_quiet()
        warm_up()
        connection.send(True)
        while True:
            folder, last = connection.recv()
            set_alarm()
            try:
                _look(folder, last, open_at, tell)
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
    before = _age(folder)
    with _open(open_at, folder) as store:
        tell(Step.LOAD, store.load())
        if last >= Step.LOAD_AGAIN:
            tell(Step.LOAD_AGAIN, store.load())
    tell("wrote", _stamps(folder) != before)
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


def _age(folder: str) -> dict[str, tuple[int, int]]:
    """Make old what is too young to be seen when it is changed, and return what `_stamps` returns then."""
    now = time.time_ns()
    for path, (_, then) in _stamps(folder).items():
        if then > now - _YOUNG:
            with suppress(FileNotFoundError):
                os.utime(path, ns=(now - 2 * _YOUNG, now - 2 * _YOUNG), follow_symlinks=False)
    return _stamps(folder)


def _stamps(folder: str) -> dict[str, tuple[int, int]]:
    """Return which file each name leads to, and when that was changed. What disappears meanwhile is left out."""
    found = [folder]
    for inside, folders, files in os.walk(folder):
        found += [os.path.join(inside, name) for name in folders + files]
    stamps = {}
    for path in found:
        with suppress(FileNotFoundError):
            status = os.lstat(path)
            stamps[path] = status.st_ino, status.st_mtime_ns
    return stamps
