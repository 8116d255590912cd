"""Faults that the kernel makes: limits of this process on the size of a file and on open descriptors.

No file is full and no disk is broken, but every write in the process, also of a C library, is cut short or refused.
Needs no root. Where the system has no such limits, nothing is limited and `False` is yielded.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["dying_at_size", "limited_files", "limited_size"]


@contextmanager
def limited_size(size: int) -> Iterator[bool]:
    """Let no file grow beyond `size` bytes: a write across it is short, one behind it fails with EFBIG."""
    with _limited("RLIMIT_FSIZE", size) as is_limited:
        yield is_limited


@contextmanager
def dying_at_size(size: int) -> Iterator[bool]:
    """Have the kernel kill this process (SIGXFSZ) at the first write beyond `size` bytes of a file.

    A write across it is done in part before: a torn write, and then the end.
    """
    if not hasattr(signal, "SIGXFSZ"):
        yield False
        return
    before = signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        with _limited("RLIMIT_FSIZE", size) as is_limited, _limited("RLIMIT_CORE", 0):
            yield is_limited
    finally:
        signal.signal(signal.SIGXFSZ, before)


@contextmanager
def limited_files(more: int) -> Iterator[bool]:
    """Let no more than `more` further descriptors be opened; the next open fails with EMFILE."""
    probe = [os.open(os.devnull, os.O_RDONLY) for _ in range(more + 1)]
    for descriptor in probe:
        os.close(descriptor)
    with _limited("RLIMIT_NOFILE", probe[-1]) as is_limited:
        yield is_limited


@contextmanager
def _limited(name: str, value: int) -> Iterator[bool]:
    try:
        import resource
    except ImportError:
        yield False
        return
    which = getattr(resource, name)
    soft, hard = resource.getrlimit(which)
    resource.setrlimit(which, (value, hard))
    try:
        yield True
    finally:
        resource.setrlimit(which, (soft, hard))
