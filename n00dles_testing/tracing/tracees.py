"""The threads that are traced: waiting for the next one to stop, and making an end of all."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time

from .ptrace import GoneError

__all__ = ["Tracees"]

_ALL_KINDS, _OF_THIS_THREAD = 0x40000000, 0x20000000
"""`__WALL` and `__WNOTHREAD` of waitpid(2)."""
_SHORTEST_PAUSE, _LONGEST_PAUSE, _SECONDS_UNTIL_A_SEARCH = 0.00002, 0.001, 0.05


class Tracees:
    """The traced threads of one program. Other children of the calling process are never waited for.

    After `time_limit` seconds all are killed.
    """

    def __init__(self, process: int, time_limit: float) -> None:
        self.status = 0
        self.timed_out = False
        self._first = process
        self._processes = {process: process}
        self._lock = threading.Lock()
        self._ending = False
        self._may_have_more = False
        self._tracer = threading.get_native_id()
        self._timer = threading.Timer(time_limit, self._time_is_over)
        self._timer.name = "time limit of a trace"
        self._timer.daemon = True
        self._timer.start()

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
        self._timer.cancel()
        self._timer.join()
        self._kill_all()
        while self.next_stop() is not None:
            pass

    def _time_is_over(self) -> None:
        self.timed_out = True
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
            if thread == self._first:
                self.status = os.waitstatus_to_exitcode(status)
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


def _next_of_all(options: int) -> int | None:
    """Return a child or tracee of this thread that has stopped or ended: 0 if none has, None if there is none."""
    everything = os.WEXITED | os.WSTOPPED | os.WNOWAIT | _ALL_KINDS | _OF_THIS_THREAD
    try:
        told = os.waitid(os.P_ALL, 0, everything | options)
    except ChildProcessError:
        return None
    return 0 if told is None else told.si_pid


def _process_of(thread: int) -> int:
    try:
        with open(f"/proc/{thread}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Tgid:"))
    except (OSError, StopIteration):
        raise GoneError from None


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
