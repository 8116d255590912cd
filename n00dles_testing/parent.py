"""Tying processes to their parents: what was started for a test must not outlive it, and its end must be seen."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

__all__ = ["adopt_orphans", "die_with_parent", "end_descendants", "expect_children", "processes"]

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_ROUNDS = 20


def die_with_parent(parent: int) -> None:
    """Have the kernel end this process when its `parent` ends, where it can (Linux); call it right after a fork."""
    if sys.platform == "linux" and _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the kernel was asked
        os._exit(1)


def expect_children() -> None:
    """Have the ends of children kept for us, also where somebody has had SIGCHLD ignored: else each looks like exit 0.

    What is ignored stays so in a new interpreter, too. Does nothing outside the main thread.
    """
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def adopt_orphans() -> None:
    """Become the parent of whatever our descendants leave behind, where that can be (Linux): it stays to be found."""
    if sys.platform == "linux" and _libc is not None:
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_descendants(pid: int, spared: Callable[[int], bool] = lambda _: False) -> list[int]:
    """Kill all descendants of a process that has adopted their orphans, also in sessions of their own (Linux).

    Return those that are `spared`, with all below them: they end by themselves, and clear away, when that process ends.
    """
    for _ in range(_ROUNDS):  # one may start another before it is killed
        living, left = _living_descendants(pid, spared)
        for each in living:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGKILL)
        if not living:
            break
    return left


def _living_descendants(pid: int, spared: Callable[[int], bool]) -> tuple[list[int], list[int]]:
    children: dict[int, list[int]] = {}
    dead = set()
    for each in processes():
        try:
            with open(f"/proc/{each}/stat", "rb") as file:
                state, parent, *_ = file.read().rpartition(b")")[2].split()
        except (OSError, ValueError):
            continue
        children.setdefault(int(parent), []).append(each)
        if state in b"ZX":
            dead.add(each)
    found, left = [pid], list[int]()
    for each in found:
        for child in children.get(each, []):
            (left if spared(child) else found).append(child)
    return [each for each in found[1:] if each not in dead], left


def processes() -> list[int]:
    """Return all processes that this one can see; none where /proc does not list them."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


try:
    # Loaded before any fork, so that no child has to.
    _libc = ctypes.CDLL(None) if sys.platform == "linux" else None
except OSError:
    _libc = None
