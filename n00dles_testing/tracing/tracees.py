"""The threads that are traced: waiting for the next one to stop, and making an end of all."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable

from .ptrace import GoneError

__all__ = ["Tracees"]

_ALL_KINDS, _OF_THIS_THREAD = 0x40000000, 0x20000000
"""`__WALL` and `__WNOTHREAD` of waitpid(2)."""
_SHORTEST_PAUSE, _LONGEST_PAUSE, _SECONDS_UNTIL_A_SEARCH = 0.00002, 0.001, 0.05
_GRACE = 1.5
"""So many seconds may go by between the end of the first process and that of all others."""


class Tracees:
    """The traced threads of one program. Other children of the calling process are never waited for.

    After `time_limit` seconds all are killed; and those that the first process leaves behind a little after its end.
    `left_behind` names these, by the number of the process.
    """

    def __init__(self, process: int, time_limit: float) -> None:
        self.status = 0
        self.timed_out = False
        self.first_has_ended = False
        self.left_behind: dict[int, str] = {}
        self.first = process
        self._processes = {process: process}
        self._lock = threading.Lock()
        self._ending = False
        self._may_have_more = False
        self._tracer = threading.get_native_id()
        self._timers = [_timer("time limit of a trace", time_limit, self._time_is_over)]

    def add(self, thread: int) -> None:
        """Take in a thread that one of them has started."""
        with self._lock:
            if thread in self._processes:
                return
            self._may_have_more = True
            try:
                self._processes[thread] = _process_of(thread)
            except GoneError:
                self._processes[thread] = thread
            if self._ending:
                _kill(self._processes[thread])

    def discard(self, thread: int) -> None:
        """Forget a thread, whose end nobody is told."""
        with self._lock:
            self._processes.pop(thread, None)

    def process_of(self, thread: int) -> int:
        """The process that a thread belongs to."""
        return self._processes[thread]

    def next_stop(self) -> tuple[int, int] | None:
        """Wait until one of them stops or ends: which one, and its wait status. None when all have ended."""
        while self._processes or self._look_for_more():
            if self.first_has_ended and not self._ending and len(self._timers) == 1:
                self._timers.append(_timer("grace of a trace", _GRACE, self._grace_is_over))
            number = _next_of_all(0)
            if number is None:
                self._processes.clear()
            elif number in self._processes or self._is_traced(number):
                self.add(number)
                if (found := self._wait_for(number)) is not None:
                    return found
            elif (found := self._one_after_the_other()) is not None:
                return found
        return None

    def end_all(self) -> None:
        """Kill what is left, and wait until it is gone."""
        for timer in self._timers:
            timer.cancel()
            timer.join()
        self._kill_all()
        while self.next_stop() is not None:
            pass

    def _time_is_over(self) -> None:
        self.timed_out = True
        self._kill_all()

    def _grace_is_over(self) -> None:
        with self._lock:
            if not self._ending:
                named = {process: _name_of(process) for process in set(self._processes.values())}
                self.left_behind = {process: name for process, name in named.items() if name is not None}
        self._kill_all()

    def _kill_all(self) -> None:
        with self._lock:
            self._ending = True
            for process in set(self._processes.values()):
                _kill(process)

    def _wait_for(self, thread: int, options: int = 0) -> tuple[int, int] | None:
        try:
            number, status = os.waitpid(thread, _ALL_KINDS | options)
        except ChildProcessError:
            self.discard(thread)
            return None
        if number == 0:
            return None
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            self.discard(thread)
            self._may_have_more |= os.WIFSIGNALED(status)
            if thread == self.first:
                self.status = os.waitstatus_to_exitcode(status)
                self.first_has_ended = True
        return thread, status

    def _one_after_the_other(self) -> tuple[int, int] | None:
        """A child that is none of ours has ended, and stands before them: look at each of them, from time to time."""
        pause, looked = _SHORTEST_PAUSE, time.monotonic()
        while self._processes:
            for thread in list(self._processes):
                found = self._wait_for(thread, os.WNOHANG)
                if found is not None:
                    return found
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            if time.monotonic() - looked > _SECONDS_UNTIL_A_SEARCH:
                self._search()
                looked = time.monotonic()
        return None

    def _look_for_more(self) -> bool:
        """Whether there is one more: a thread that was killed could not tell whom it had just started."""
        if _next_of_all(os.WNOHANG) is None:
            return False
        if self._may_have_more:
            self._search()
        return bool(self._processes)

    def _search(self) -> None:
        known = [f"/proc/{process}/task" for process in set(self._processes.values())]
        for place in ["/proc", *known]:
            with contextlib.suppress(OSError):
                for name in os.listdir(place):
                    if name.isdigit() and int(name) not in self._processes and self._is_traced(int(name)):
                        self.add(int(name))

    def _is_traced(self, process: int) -> bool:
        with contextlib.suppress(OSError), open(f"/proc/{process}/status") as file:
            return f"TracerPid:\t{self._tracer}\n" in file.readlines()
        return False


def _timer(name: str, seconds: float, does: Callable[[], None]) -> threading.Timer:
    timer = threading.Timer(seconds, does)
    timer.name = name
    timer.daemon = True
    timer.start()
    return timer


def _next_of_all(options: int) -> int | None:
    """Return a child or tracee of this thread that has stopped or ended: 0 if none has, None if there is none."""
    everything = os.WEXITED | os.WSTOPPED | os.WNOWAIT | _ALL_KINDS | _OF_THIS_THREAD
    try:
        told = os.waitid(os.P_ALL, 0, everything | options)
    except ChildProcessError:
        return None
    return 0 if told is None else told.si_pid


def _name_of(process: int) -> str | None:
    """Return what to call a process; None if it has ended."""
    try:
        with open(f"/proc/{process}/stat", errors="replace") as file:
            name, _, rest = file.read().partition("(")[2].rpartition(")")
    except OSError:
        return None
    return None if rest.split()[0] in "ZX" else f"{name} (process {process})"


def _process_of(thread: int) -> int:
    try:
        with open(f"/proc/{thread}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Tgid:"))
    except (OSError, StopIteration):
        raise GoneError from None


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
