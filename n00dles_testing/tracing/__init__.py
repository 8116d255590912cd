"""System calls of a program and its threads, recorded and disturbed, without strace, a compiler or any privilege.

    if (reason := why_not()) is None:
        recorded = trace(lambda: save(folder), folder)
        for call in recorded.events:
            print(call)

A child is forked and traced with ptrace; a seccomp filter stops it only at the calls that can change or sync a file.
Read `calls` for what a trace consists of, `injections` for what may be done to a call.
"""

from __future__ import annotations

from .calls import Event, File, Mark, Obstacle, Trace, TracedCall
from .injections import Fail, Injection, Kill, Short
from .marks import Marks
from .permission import why_not
from .running import CannotTraceError, trace

__all__ = [
    "CannotTraceError",
    "Event",
    "Fail",
    "File",
    "Injection",
    "Kill",
    "Mark",
    "Marks",
    "Obstacle",
    "Short",
    "Trace",
    "TracedCall",
    "trace",
    "why_not",
]
