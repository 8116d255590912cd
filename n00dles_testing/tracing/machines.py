"""The kinds of machine whose programs can be traced: their system call numbers, and where the arguments stand.

Sources: `arch/x86/entry/syscalls/syscall_64.tbl`, `include/uapi/asm-generic/unistd.h` (arm64), `linux/audit.h`, and
`user_regs_struct` (x86-64) and `user_pt_regs` (arm64) of the kernel's `asm/ptrace.h`.
"""

from __future__ import annotations

import platform
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

__all__ = ["ARM64", "CONDITIONAL", "MACHINES", "X86_64", "Machine", "this_machine"]

CONDITIONAL = ("mmap", "mprotect", "pkey_mprotect", "ioctl")
"""Calls that most often have nothing to do with files: the filter looks at their arguments first."""


@dataclass(frozen=True)
class Machine:
    """One kind of machine.

    `numbers` has every call that can change or sync a file, or hide such a change. `audit` is the number under which
    the kernel knows the machine in a filter. Registers are told by their place among the 8 byte words that ptrace
    gives: those of the six arguments, of the call's number, and of the result.
    """

    name: str
    audit: int
    numbers: Mapping[str, int]
    words: int
    arguments: tuple[int, int, int, int, int, int]
    number: int
    result: int
    other_numbers_from: int | None = None
    """From here on a number is that of another convention (x32) under the same `audit`."""
    skips_by_register: bool = True
    """Whether a call is skipped by putting -1 into the register of its number; else it is the regset `SYSTEM_CALL`."""

    @cached_property
    def names(self) -> dict[int, str]:
        """The name of each number."""
        return {number: name for name, number in self.numbers.items()}


_EVERYWHERE_SINCE_5_1 = {"io_uring_setup": 425, "openat2": 437}

X86_64 = Machine(
    name="x86_64",
    audit=0xC000003E,
    numbers={
        "write": 1,
        "open": 2,
        "mmap": 9,
        "mprotect": 10,
        "ioctl": 16,
        "pwrite64": 18,
        "writev": 20,
        "msync": 26,
        "sendfile": 40,
        "fsync": 74,
        "fdatasync": 75,
        "truncate": 76,
        "ftruncate": 77,
        "rename": 82,
        "mkdir": 83,
        "rmdir": 84,
        "creat": 85,
        "link": 86,
        "unlink": 87,
        "symlink": 88,
        "mknod": 133,
        "sync": 162,
        "io_submit": 209,
        "openat": 257,
        "mkdirat": 258,
        "mknodat": 259,
        "unlinkat": 263,
        "renameat": 264,
        "linkat": 265,
        "symlinkat": 266,
        "splice": 275,
        "sync_file_range": 277,
        "fallocate": 285,
        "pwritev": 296,
        "open_by_handle_at": 304,
        "syncfs": 306,
        "renameat2": 316,
        "copy_file_range": 326,
        "pwritev2": 328,
        "pkey_mprotect": 329,
        **_EVERYWHERE_SINCE_5_1,
    },
    words=27,
    arguments=(14, 13, 12, 7, 9, 8),
    number=15,
    result=10,
    other_numbers_from=0x40000000,
)

ARM64 = Machine(
    name="aarch64",
    audit=0xC00000B7,
    numbers={
        "io_submit": 2,
        "ioctl": 29,
        "mknodat": 33,
        "mkdirat": 34,
        "unlinkat": 35,
        "symlinkat": 36,
        "linkat": 37,
        "renameat": 38,
        "truncate": 45,
        "ftruncate": 46,
        "fallocate": 47,
        "openat": 56,
        "write": 64,
        "writev": 66,
        "pwrite64": 68,
        "pwritev": 70,
        "sendfile": 71,
        "splice": 76,
        "sync": 81,
        "fsync": 82,
        "fdatasync": 83,
        "sync_file_range": 84,
        "mmap": 222,
        "mprotect": 226,
        "msync": 227,
        "open_by_handle_at": 265,
        "syncfs": 267,
        "renameat2": 276,
        "copy_file_range": 285,
        "pwritev2": 287,
        "pkey_mprotect": 288,
        **_EVERYWHERE_SINCE_5_1,
    },
    words=34,
    arguments=(0, 1, 2, 3, 4, 5),
    number=8,
    result=0,
    skips_by_register=False,
)

MACHINES = (X86_64, ARM64)


def this_machine() -> Machine | None:
    """The kind of machine that this process runs on; None if it cannot be traced."""
    if sys.platform != "linux" or struct.calcsize("P") != 8 or sys.byteorder != "little":  # noqa: PLR2004 bytes
        return None
    return next((machine for machine in MACHINES if machine.name == platform.machine()), None)
