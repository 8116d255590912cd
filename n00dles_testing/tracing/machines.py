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

CONDITIONAL = ("mmap", "mprotect", "pkey_mprotect", "ioctl", "clone")
"""Calls that most often have nothing to do with files: the filter looks at their arguments first."""

_EVERYWHERE_SINCE_6_6 = {"fchmodat2": 452, "setxattrat": 463, "removexattrat": 466}


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


_EVERYWHERE_SINCE_5_1 = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "move_mount": 429,
    "clone3": 435,
    "openat2": 437,
}

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
        "bind": 49,
        "clone": 56,
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
        "chmod": 90,
        "fchmod": 91,
        "chown": 92,
        "fchown": 93,
        "lchown": 94,
        "mknod": 133,
        "pivot_root": 155,
        "chroot": 161,
        "sync": 162,
        "mount": 165,
        "umount2": 166,
        "setxattr": 188,
        "lsetxattr": 189,
        "fsetxattr": 190,
        "removexattr": 197,
        "lremovexattr": 198,
        "fremovexattr": 199,
        "io_submit": 209,
        "openat": 257,
        "mkdirat": 258,
        "mknodat": 259,
        "fchownat": 260,
        "unlinkat": 263,
        "renameat": 264,
        "linkat": 265,
        "symlinkat": 266,
        "fchmodat": 268,
        "splice": 275,
        "sync_file_range": 277,
        "fallocate": 285,
        "pwritev": 296,
        "open_by_handle_at": 304,
        "syncfs": 306,
        "setns": 308,
        "renameat2": 316,
        "copy_file_range": 326,
        "pwritev2": 328,
        "pkey_mprotect": 329,
        **_EVERYWHERE_SINCE_5_1,
        **_EVERYWHERE_SINCE_6_6,
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
        "setxattr": 5,
        "lsetxattr": 6,
        "fsetxattr": 7,
        "removexattr": 14,
        "lremovexattr": 15,
        "fremovexattr": 16,
        "ioctl": 29,
        "mknodat": 33,
        "mkdirat": 34,
        "unlinkat": 35,
        "symlinkat": 36,
        "linkat": 37,
        "renameat": 38,
        "umount2": 39,
        "mount": 40,
        "pivot_root": 41,
        "truncate": 45,
        "ftruncate": 46,
        "fallocate": 47,
        "chroot": 51,
        "fchmod": 52,
        "fchmodat": 53,
        "fchownat": 54,
        "fchown": 55,
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
        "bind": 200,
        "clone": 220,
        "mmap": 222,
        "mprotect": 226,
        "msync": 227,
        "open_by_handle_at": 265,
        "syncfs": 267,
        "setns": 268,
        "renameat2": 276,
        "copy_file_range": 285,
        "pwritev2": 287,
        "pkey_mprotect": 288,
        **_EVERYWHERE_SINCE_5_1,
        **_EVERYWHERE_SINCE_6_6,
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
