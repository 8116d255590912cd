"""The seccomp filter that stops a process only at the calls that matter, so that all others cost nothing.

Source: `Documentation/userspace-api/seccomp_filter.rst` and `linux/filter.h` of the kernel.
"""

from __future__ import annotations

import ctypes
import mmap
import struct

from .libc import libc
from .machines import CONDITIONAL, Machine

__all__ = ["ATOMIC_WRITE", "CLONES", "FOREIGN", "UNTRACED", "filter_program", "install"]

CLONES = {"FICLONE": 0x40049409, "FICLONERANGE": 0x4020940D, "FIDEDUPERANGE": 0xC0189436}
"""What `ioctl` is asked to let two files share their bytes (`linux/fs.h`)."""

ATOMIC_WRITE = 0xF502
"""What `ioctl` is asked to bring into a file of F2FS all that was written since the begin of an atomic write, at once
(F2FS_IOC_COMMIT_ATOMIC_WRITE of `linux/f2fs.h`). SQLite does so there."""

UNTRACED = 0x00800000
"""What `clone` is asked to let nobody trace the child (CLONE_UNTRACED of `linux/sched.h`)."""

FOREIGN = 1
"""What the tracer is told with a stop at a call of another machine type, such as that of a 32 bit program."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _TRACE = 0x7FFF0000, 0x7FF00000
_NUMBER, _AUDIT, _ARGUMENTS = 0, 4, 16
_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER = 38, 22, 2

_Step = tuple[int, int, int, int]


def _stop_if(test: int, value: int) -> list[_Step]:
    return [(test, 0, 1, value), (_RETURN, 0, 0, _TRACE)]


def _argument(number: int) -> _Step:
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * number)  # its low half: the machines are little-endian


def filter_program(machine: Machine) -> bytes:
    """The instructions of the filter, 8 bytes each, in the form of `struct sock_filter`.

    It stops at each call of `machine.numbers`; of `CONDITIONAL` at a shared mapping, at one that becomes writable, at a
    clone of bytes, at the end of an atomic write, and at a child that is not to be traced. A call of another machine
    type stops with `FOREIGN`.
    """
    foreign = (_RETURN, 0, 0, _TRACE | FOREIGN)
    steps: list[_Step] = [(_LOAD, 0, 0, _AUDIT), (_EQUAL, 1, 0, machine.audit), foreign, (_LOAD, 0, 0, _NUMBER)]
    if machine.other_numbers_from is not None:
        steps += [(_AT_LEAST, 0, 1, machine.other_numbers_from), foreign]
    for name, number in machine.numbers.items():
        if name not in CONDITIONAL:
            steps += _stop_if(_EQUAL, number)
    tests = {
        "mmap": [_argument(3), *_stop_if(_ANY_BIT, mmap.MAP_SHARED)],
        "mprotect": [_argument(2), *_stop_if(_ANY_BIT, mmap.PROT_WRITE)],
        "pkey_mprotect": [_argument(2), *_stop_if(_ANY_BIT, mmap.PROT_WRITE)],
        "clone": [_argument(0), *_stop_if(_ANY_BIT, UNTRACED)],
        "ioctl": [
            _argument(1),
            *(step for request in (*CLONES.values(), ATOMIC_WRITE) for step in _stop_if(_EQUAL, request)),
        ],
    }
    for name in CONDITIONAL:
        test = [*tests[name], (_RETURN, 0, 0, _ALLOW)]
        steps += [(_EQUAL, 0, len(test), machine.numbers[name]), *test]
    steps.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *step) for step in steps)


def install(program: bytes) -> None:
    """Let the filter stop the calling thread, and all threads and children that it will have, for good.

    Raises OSError if the kernel refuses. The process can gain no privileges from then on (setuid programs).
    """
    steps = ctypes.create_string_buffer(program, len(program))
    whole = ctypes.create_string_buffer(struct.pack("@HxxxxxxQ", len(program) // 8, ctypes.addressof(steps)))
    for option, arguments in ((_NO_NEW_PRIVS, (1, 0)), (_SET_SECCOMP, (_FILTER, ctypes.addressof(whole)))):
        if libc().prctl(option, *arguments, 0, 0) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"prctl({option}): the kernel refuses a seccomp filter")
