"""The C library, through which the kernel is asked for what Python has no function for."""

from __future__ import annotations

import ctypes
from functools import cache

__all__ = ["libc"]


@cache
def libc() -> ctypes.CDLL:
    """The C library of this process, with the types of `prctl` and `ptrace` told. On Linux only."""
    library = ctypes.CDLL(None, use_errno=True)
    word = ctypes.c_ulong
    library.prctl.restype = ctypes.c_int
    library.prctl.argtypes = [ctypes.c_int, word, word, word, word]
    library.ptrace.restype = ctypes.c_long
    library.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    return library
