"""Run a function in a forked child and trace it."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import NoReturn

from ..parent import expect_children
from .calls import Trace
from .filters import filter_program, install
from .libc import libc
from .machines import this_machine
from .marks import Marks
from .ptrace import GoneError, seize
from .tracees import Tracees
from .tracer import Asked, Tracer
from .watching import Watch

__all__ = ["CannotTraceError", "trace"]

_YAMA_FORBIDS = 2


class CannotTraceError(RuntimeError):
    """Nothing can be traced here; the message is a sentence that says why. `why_not` says it before."""


def trace(
    run: Callable[[], object],
    root: str,
    *,
    marks: Marks | None = None,
    on_call: Asked | None = None,
    time_limit: float = 60.0,
    syncs: bool = True,
) -> Trace:
    """Call `run` in a forked child; return every call on files below `root` that it, its threads and children made.

    The child exits with 0, or with 1 and the traceback on stderr if `run` raises. What it has started and left behind
    is waited for, for a second or two, and then killed (see `Trace.left_behind`). `trace` returns when all have ended,
    and kills all after `time_limit` seconds; nothing of it outlives the calling thread. `marks` are
    those that `run` puts. `on_call(call, n)` is asked before the n-th call on a watched file that may change or sync
    something, or opens it (n counts from 1, over all threads); it may return an injection. It must neither fork nor
    wait for children of no particular number. Whatever it raises ends the child, and is raised here.

    Without `syncs` a sync is told, and succeeds, but nothing waits for the disk: that saves milliseconds each, where
    nobody is going to keep the files.

    Call it in any thread, best in a process without other threads: it forks. Other children of the process are left
    alone; but no other thread may meanwhile wait for any child there is (`os.wait()`). SIGCHLD is not ignored any more.

    Raises `CannotTraceError`, FileNotFoundError if there is no `root`, and ValueError for an injection that does not
    fit its call.
    """
    machine = this_machine()
    if machine is None:
        raise CannotTraceError("Only programs on 64 bit Linux on x86-64 or arm64 can be traced.")
    expect_children()
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        raise CannotTraceError(
            "SIGCHLD is ignored here, so how a child ends is not told; that is set in the main thread."
        )
    watch = Watch(root)
    program = filter_program(machine)
    libc()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()  # else the child would print it again
    with contextlib.ExitStack() as stack:
        go, told = _pipe(stack), _pipe(stack)
        child = _fork()
        if child == 0:
            _be_traced(run, program, go, told)
        stack.callback(_end, child)
        for end in (go[0], told[1]):
            end.close()
        _seize(child)
        tracer = Tracer(machine, watch, Tracees(child, time_limit), marks, on_call, syncs)
        tracer.looks_at_mappings(child)
        with contextlib.suppress(BrokenPipeError):  # the time is over already
            go[1].write(b".")
        go[1].close()
        traced = tracer.follow()
        refused = told[0].read(1)
    if refused:
        reason = os.strerror(refused[0])
        raise CannotTraceError(f"The kernel, or the container, refuses a seccomp filter to this program ({reason}).")
    return traced


def _pipe(stack: contextlib.ExitStack) -> tuple[io.FileIO, io.FileIO]:
    reader, writer = os.pipe()
    return stack.enter_context(open(reader, "rb", 0)), stack.enter_context(open(writer, "wb", 0))


def _end(child: int) -> None:
    """Kill a child that is still there, as after Ctrl-C."""
    with contextlib.suppress(ChildProcessError):
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        os.kill(child, signal.SIGKILL)
        while os.WIFSTOPPED(os.waitpid(child, 0)[1]):
            pass


def _fork() -> int:
    with warnings.catch_warnings():
        # That there are other threads is for the caller to judge, and must not become an error half-way.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _seize(child: int) -> None:
    try:
        seize(child)
    except (OSError, GoneError) as error:
        raise CannotTraceError(why_refused(child, error)) from None


def why_refused(child: int, error: Exception, *, scope: str = "/proc/sys/kernel/yama/ptrace_scope") -> str:
    """Say, in a sentence, why the kernel does not let a child be traced."""
    with contextlib.suppress(OSError), open(f"/proc/{child}/status") as file:
        tracer = next((line.split()[1] for line in file if line.startswith("TracerPid:")), "0")
        if tracer != "0":
            return (
                f"This process is already traced, by process {tracer} (strace, a debugger): nobody can trace it twice."
            )
    with contextlib.suppress(OSError, ValueError), open(scope) as file:
        level = int(file.read())
        if level >= _YAMA_FORBIDS:
            return f"This system permits no program to trace its child (kernel.yama.ptrace_scope is {level})."
    cause = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "it has ended"
    return f"The kernel, or the container, does not permit ptrace ({cause})."


def _be_traced(
    run: Callable[[], object], program: bytes, go: tuple[io.FileIO, io.FileIO], told: tuple[io.FileIO, io.FileIO]
) -> NoReturn:
    """Be the child: wait until it is traced, then run, and never come back to what the parent was doing."""
    code = 1
    try:
        go[1].close()
        told[0].close()
        os.setpgid(0, 0)  # Ctrl-C is the tracer's, who ends it
        if go[0].read(1):
            go[0].close()
            _install(program, told[1])
            told[1].close()
            run()
            code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code & 0xFF)


def _install(program: bytes, told: io.FileIO) -> None:
    try:
        install(program)
    except OSError as error:
        told.write(bytes([error.errno or 1]))
        os._exit(1)
