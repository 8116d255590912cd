"""The process that is forked for every other process of the suite: it imports the store's module, and opens nothing.

It runs no event loop and no thread. It sleeps in one poll: for the next fork, for the end of a fork, for a word that a
fork shall be killed (its socket is hung up), and for the end of whoever asked, with which all forks end.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import select
import signal
import socket
import sys
import threading
import traceback
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from ..channel import Channel
from ..parent import adopt_orphans, die_with_parent, end_descendants
from . import disturbed, traced, tracer
from .child import serve
from .scenario import describe
from .target import StoreTarget

__all__ = ["main"]

_IMPORTED = (disturbed, traced)
"""What most forks do: imported once, and not by each of them, which takes it longer than what it does."""
_POLL_SECONDS = 0.002
"""How often forks are looked at where the kernel does not tell of their end."""


@dataclass(slots=True)
class _Fork:
    """A process that lives; `life` tells of its birth and its end, and is hung up when it shall end."""

    pid: int
    life: socket.socket
    watch: int | None
    is_killed: bool = False


class _Nursery:
    def __init__(self, control: socket.socket, target: StoreTarget) -> None:
        self._control = control
        self._target = target
        self._forks: list[_Fork] = []
        self._pid = os.getpid()
        self._is_over = False

    def serve(self) -> None:
        """Fork whenever asked, until nobody asks any more."""
        try:
            while not self._is_over:
                self._wait()
                for fork in list(self._forks):
                    self._look_at(fork)
        finally:
            for fork in self._forks:
                os.kill(fork.pid, signal.SIGKILL)
                os.waitpid(fork.pid, 0)
            end_descendants(self._pid)

    def _wait(self) -> None:
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        for fork in self._forks:
            if fork.watch is not None:
                poll.register(fork.watch, select.POLLIN)
            if not fork.is_killed:
                poll.register(fork.life, select.POLLIN)
        must_look = any(fork.watch is None for fork in self._forks)
        ready = {descriptor for descriptor, _ in poll.poll(_POLL_SECONDS * 1000 if must_look else None)}
        for fork in self._forks:
            if fork.life.fileno() in ready:
                fork.is_killed = True
                os.kill(fork.pid, signal.SIGKILL)  # it is not reaped yet, so the number is its own
        if self._control.fileno() in ready:
            self._take_in_a_request()

    def _take_in_a_request(self) -> None:
        word, descriptors, _, _ = socket.recv_fds(self._control, 1, 4)
        if not word:
            self._is_over = True
            return
        reads, writes, output, life = descriptors
        self._fork(reads, writes, output, socket.socket(fileno=life), tracing=word == b"t")
        for descriptor in (reads, writes, output):
            os.close(descriptor)

    def _fork(self, reads: int, writes: int, output: int, life: socket.socket, *, tracing: bool) -> None:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # else the fork would print it again
        pid = os.fork()
        if pid == 0:
            self._become(reads, writes, output, life, tracing=tracing)
        watch = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
        self._forks.append(_Fork(pid, life, watch))
        _tell(life, {"pid": pid})

    def _become(self, reads: int, writes: int, output: int, life: socket.socket, *, tracing: bool) -> NoReturn:
        """Be the fork: keep nothing of the nursery's, and never come back to its loop."""
        try:
            die_with_parent(self._pid)
            os.dup2(output, 1)
            os.dup2(output, 2)
            for end in (self._control, life, *(fork.life for fork in self._forks)):
                end.close()
            for descriptor in (output, *(fork.watch for fork in self._forks)):
                if descriptor is not None:
                    os.close(descriptor)
            random.seed()
            channel = Channel(reads, writes, only_here=not tracing)
            if tracing:
                tracer.serve(channel, lambda: self._target)
            else:
                asyncio.run(serve(channel, self._target))
            sys.stdout.flush()
            # A store may have left threads behind that would keep the process.
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)

    def _look_at(self, fork: _Fork) -> None:
        pid, status = os.waitpid(fork.pid, os.WNOHANG)
        if pid == 0:
            return
        self._forks.remove(fork)
        _tell(fork.life, {"status": os.waitstatus_to_exitcode(status)})
        fork.life.close()
        if fork.watch is not None:
            os.close(fork.watch)


def _tell(life: socket.socket, message: dict[str, int]) -> None:
    with suppress(OSError):  # nobody listens any more
        Channel(life.fileno(), life.fileno()).send(message)


def _open_descriptors() -> dict[int, tuple[int, int]]:
    """Return device and inode of each, by number."""
    found = {}
    with suppress(OSError):
        for name in os.listdir("/dev/fd"):
            with suppress(OSError):
                status = os.fstat(int(name))
                found[int(name)] = (status.st_dev, status.st_ino)
    return found


def _threads() -> int:
    """Count the threads of this process, also those that a C library has started."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def _import(text: str) -> StoreTarget | str:
    """Import the target; return it, or why this process cannot be forked."""
    before = _open_descriptors()
    opened: list[str] = []

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        if is_importing and event == "sqlite3.connect":
            opened.append(f"a database ({arguments[0]!r})")

    is_importing = True
    sys.addaudithook(hear)
    try:
        target = StoreTarget.parse(text)
    except (Exception, SystemExit) as error:
        return f"importing it once more raised {describe(error)}"
    finally:
        is_importing = False
    gc.collect()
    opened += [f"descriptor {number}" for number, what in _open_descriptors().items() if before.get(number) != what]
    if opened:
        return f"importing it opens {' and '.join(opened)}, which a fork would share"
    if _threads() > 1:
        return f"importing it starts {_threads() - 1} threads, which a fork would not have"
    return target


def main(control: str) -> None:
    """Be the nursery; the argument is the number of an inherited socket."""
    ours = socket.socket(fileno=int(control))
    channel = Channel(ours.fileno(), ours.fileno())
    start = channel.receive()
    if start is None:
        return
    target = _import(start["target"])
    if isinstance(target, str):
        channel.send({"unfit": target})
        return
    # Each look of the collector at what all forks share would copy the memory.
    gc.collect()
    gc.freeze()
    adopt_orphans()
    channel.send({"ready": True})
    _Nursery(ours, target).serve()
    os._exit(0)
