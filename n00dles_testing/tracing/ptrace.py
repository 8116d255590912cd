"""The requests of ptrace: take hold of a thread, look at its registers and change them, let it go on.

Sources: ptrace(2), and `linux/ptrace.h` of the kernel. All must come from the thread that has seized.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Sequence

from .libc import libc
from .machines import Machine

__all__ = ["Event", "GoneError", "Registers", "event_message", "listen", "poke", "resume", "seize"]

_POKE_DATA, _CONTINUE, _TO_THE_END_OF_THE_CALL = 5, 7, 24
_EVENT_MESSAGE, _GET_REGISTERS, _SET_REGISTERS, _SEIZE, _LISTEN = 0x4201, 0x4204, 0x4205, 0x4206, 0x4208
_GENERAL, _ARM_SYSTEM_CALL = 1, 0x404
_OPTIONS = 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x80 | 0x100000
"""Calls told from signals; forks, vforks and clones followed; exec and filter told; all dies with the tracer."""


class Event:
    """Why a thread has stopped, where it is not for a signal."""

    FORK, VFORK, CLONE, EXEC, SECCOMP, STOP = 1, 2, 3, 4, 7, 128


class GoneError(Exception):
    """The thread is no more, or dying: its end will be told by `waitpid`."""


def _request(request: int, thread: int, address: int | None = None, data: int | None = None) -> None:
    if libc().ptrace(request, thread, address, data) == -1:
        number = ctypes.get_errno()
        if number == errno.ESRCH:
            raise GoneError
        raise OSError(number, f"ptrace({request:#x}) of thread {thread}")


def seize(process: int) -> None:
    """Trace a process from now on, with all that it will start. It is not stopped by that.

    Raises OSError if the kernel does not permit it, and `GoneError`.
    """
    _request(_SEIZE, process, None, _OPTIONS)


def resume(thread: int, signal: int = 0, *, to_the_end_of_the_call: bool = False) -> None:
    """Let a stopped thread go on, with a signal if that is what it was stopped for."""
    _request(_TO_THE_END_OF_THE_CALL if to_the_end_of_the_call else _CONTINUE, thread, None, signal)


def listen(thread: int) -> None:
    """Leave a thread stopped, as SIGSTOP wants it, until SIGCONT."""
    _request(_LISTEN, thread)


def poke(thread: int, address: int, word: int) -> None:
    """Put a word of 8 bytes into the memory of a stopped thread."""
    _request(_POKE_DATA, thread, address, word)


def event_message(thread: int) -> int:
    """Return what is told with an event: the new thread, the one that called exec, or the word of the filter."""
    message = ctypes.c_ulong()
    _request(_EVENT_MESSAGE, thread, None, ctypes.addressof(message))
    return message.value


class Registers:
    """The registers of stopped threads of one kind of machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._form = struct.Struct(f"<{machine.words}Q")
        self._words = ctypes.create_string_buffer(self._form.size)
        self._vector = ctypes.create_string_buffer(16)

    def read(self, thread: int) -> tuple[int, ...]:
        """Return all of them, without signs."""
        self._exchange(_GET_REGISTERS, thread, _GENERAL, self._words)
        return self._form.unpack(self._words)

    def result(self, thread: int) -> int:
        """What the call that has ended returns, with its sign."""
        word = self.read(thread)[self._machine.result]
        return word - (1 << 64) if word >> 63 else word

    def write(self, thread: int, words: Sequence[int]) -> None:
        """Set all of them."""
        self._form.pack_into(self._words, 0, *words)
        self._exchange(_SET_REGISTERS, thread, _GENERAL, self._words)

    def change_call(
        self, thread: int, words: Sequence[int], arguments: dict[int, int], number: int | None = None
    ) -> None:
        """Let a thread that is about to make a call make it with other arguments, or make another call: -1 is none."""
        changed = list(words)
        for index, value in arguments.items():
            changed[self._machine.arguments[index]] = value
        if number is None:
            pass
        elif self._machine.skips_by_register:
            changed[self._machine.number] = number % (1 << 64)
        else:
            call = ctypes.create_string_buffer(struct.pack("<i", number), 4)
            self._exchange(_SET_REGISTERS, thread, _ARM_SYSTEM_CALL, call)
        self.write(thread, changed)

    def skip_call(self, thread: int, words: Sequence[int], result: int) -> None:
        """Let a thread that is about to make a call make none, and see a result of it."""
        changed = list(words)
        changed[self._machine.result] = result % (1 << 64)
        self.change_call(thread, changed, {}, -1)

    def restore(self, thread: int, words: Sequence[int], result: int) -> None:
        """Give a thread whose call has ended what it had before that was changed, and a result.

        The number of the call, too: if a signal has interrupted it, the kernel makes it again by that.
        """
        changed = list(words)
        changed[self._machine.result] = result % (1 << 64)
        self.write(thread, changed)

    def _exchange(self, request: int, thread: int, kind: int, buffer: ctypes.Array[ctypes.c_char]) -> None:
        struct.pack_into("<QQ", self._vector, 0, ctypes.addressof(buffer), len(buffer))
        _request(request, thread, kind, ctypes.addressof(self._vector))
