"""Follows a forked child, its threads and children from stop to stop, and writes down their calls."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from .attribute_calls import ATTRIBUTE_CALLS
from .calls import Event, Mark, Obstacle, Trace, TracedCall
from .data_calls import DATA_CALLS
from .entries import Entry, Reading, obstacle
from .filters import FOREIGN
from .hidden_calls import HIDDEN_CALLS, SHARED_MAPPING
from .injections import Fail, Injection, Kill, Short
from .machines import Machine
from .marks import Marks
from .name_calls import NAME_CALLS
from .ptrace import Event as Stop
from .ptrace import GoneError, Registers, event_message, listen, poke, resume
from .threads import Thread
from .tracees import Tracees
from .watching import Watch

__all__ = ["Asked", "Tracer"]

Asked = Callable[[TracedCall, int], Injection | None]

_READERS = {**DATA_CALLS, **NAME_CALLS, **ATTRIBUTE_CALLS, **HIDDEN_CALLS}
_CALL_STOP = signal.SIGTRAP | 0x80
_FIRST_RESTART, _LAST_RESTART = -516, -512
_AT_A_PLACE = {"write": "pwrite64", "writev": "pwritev"}
"""The call that does the same, but at a place that is told to it."""
_STOPPING = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}


@dataclass(slots=True)
class _Running:
    """A call that has begun and not ended."""

    reading: Reading
    words: tuple[int, ...] | None = None
    """The registers before they were changed."""
    length: tuple[int, int] | None = None
    """Where in memory a length was changed, and what it was."""
    error: int | None = None
    """What is returned in place of the result."""


@dataclass(slots=True)
class _State:
    """What is known of one thread."""

    thread: Thread | None = None
    running: _Running | None = None
    waits: bool = False
    """It stands before a call that must not overlap one that is running."""


@dataclass
class Tracer:
    """One trace in the making. Use `trace`."""

    machine: Machine
    watch: Watch
    tracees: Tracees
    marks: Marks | None
    on_call: Asked | None
    syncs: bool
    _events: dict[int, Event] = field(default_factory=dict)
    _obstacles: dict[Obstacle, None] = field(default_factory=dict)
    _states: dict[int, _State] = field(default_factory=dict)
    _late: dict[int, str] = field(default_factory=dict)
    """The file that a process has changed last after the first one had ended."""
    _place: int = 0
    _asked: int = 0

    def __post_init__(self) -> None:
        self._registers = Registers(self.machine)

    def follow(self) -> Trace:
        """Follow until all have ended. Whatever is raised on the way, none of them is left."""
        try:
            while (stop := self.tracees.next_stop()) is not None:
                thread, status = stop
                with contextlib.suppress(GoneError):
                    self._handle(thread, status)
                self._let_waiting_go()
        finally:
            self.tracees.end_all()
            for state in self._states.values():
                _close(state)
        left = self.tracees.left_behind
        for process, path in self._late.items():
            if process in left:
                text = f"{path}: {left[process]} went on writing it after the end of the program, and was ended in that"
                self._obstruct((Obstacle(path, text),))
        return Trace(
            tuple(self._events[place] for place in sorted(self._events)),
            tuple(self._obstacles),
            self.tracees.status,
            process=self.tracees.first,
            timed_out=self.tracees.timed_out,
            left_behind=tuple(left.values()),
            outside=self.watch.outside.kept(),
        )

    def looks_at_mappings(self, process: int) -> None:
        """Take down as obstacles what the program has mapped before it was traced."""
        with contextlib.suppress(GoneError):
            try:
                mappings = self._thread(process, self._states.setdefault(process, _State())).mapped()
            except OSError:
                self._cannot_read("what was mapped into memory")
                return
            watched = [it for it in mappings if self.watch.sees(it.found)]
            self.watch.is_mapped = bool(watched)
            self._obstruct(tuple(obstacle(it.found.file, SHARED_MAPPING) for it in watched if it.is_writable))

    def _cannot_read(self, what: str) -> None:
        self._obstruct((Obstacle(self.watch.root, f"{self.watch.root}: {what} could not be read in /proc"),))

    def _obstruct(self, obstacles: tuple[Obstacle, ...]) -> None:
        """Take down obstacles, each once."""
        self._obstacles.update(dict.fromkeys(obstacles))

    def _next_place(self) -> int:
        self._place += 1
        return self._place

    def _handle(self, thread: int, status: int) -> None:
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            self._has_ended(thread)
            return
        state = self._states.setdefault(thread, _State())
        sent, event = os.WSTOPSIG(status), status >> 16
        if event == Stop.SECCOMP:
            self._begins(thread, state)
        elif sent == _CALL_STOP:
            self._ends(thread, state)
            resume(thread)
        elif event == Stop.STOP and sent in _STOPPING:
            listen(thread)
        else:
            if event in (Stop.FORK, Stop.VFORK, Stop.CLONE):
                self.tracees.add(event_message(thread))
            elif event == Stop.EXEC:
                self._has_new_program(thread)
            resume(thread, 0 if event else sent, to_the_end_of_the_call=state.running is not None)

    def _has_ended(self, thread: int) -> None:
        _close(self._states.pop(thread, _State()))

    def _has_new_program(self, process: int) -> None:
        former = event_message(process)
        if former != process:
            self.tracees.discard(former)
            self._has_ended(former)
        for state in self._states.values():
            if state.thread is not None and state.thread.process == process:
                _close(state)
        # What the first thread was doing, if another one has called exec, does not end any more.
        self._states[process] = _State()

    def _thread(self, thread: int, state: _State) -> Thread:
        if state.thread is None:
            state.thread = Thread(thread, self.tracees.process_of(thread))
        return state.thread

    def _begins(self, thread: int, state: _State) -> None:
        if event_message(thread) == FOREIGN:
            text = f"{self.watch.root}: a program of another machine type (32 bit?) ran, whose calls cannot be read"
            self._obstruct((Obstacle(self.watch.root, text),))
            resume(thread)
            return
        words = self._registers.read(thread)
        name = self.machine.names.get(words[self.machine.number], "")
        arguments = tuple(words[place] for place in self.machine.arguments)
        try:
            reading = self._read(name, arguments, self._thread(thread, state))
        except OSError:
            resume(thread)  # it may be dying, which is the reason: then this raises GoneError
            self._cannot_read(f"what a call ({name}) was about")
            return
        if reading is None:
            resume(thread)
        elif reading.alone and any(other.running and other.running.reading.alone for other in self._states.values()):
            state.waits = True
        else:
            self._runs(thread, state, reading, words)

    def _read(self, name: str, arguments: tuple[int, ...], thread: Thread) -> Reading | None:
        if name == "write" and self.marks is not None and arguments[0] == self.marks.descriptor:
            self._takes_down_mark(thread, *arguments[1:3])
            return None
        reader = _READERS.get(name)
        return None if reader is None else reader(Entry(name, arguments, thread, self.watch))

    def _let_waiting_go(self) -> None:
        for thread, state in list(self._states.items()):
            if state.waits:
                state.waits = False
                with contextlib.suppress(GoneError):
                    self._begins(thread, state)

    def _takes_down_mark(self, thread: Thread, address: int, length: int) -> None:
        place = self._next_place()
        self._events[place] = Mark(place, thread.memory.read(address, length).decode(errors="replace"))

    def _runs(self, thread: int, state: _State, reading: Reading, words: tuple[int, ...]) -> None:
        place = self._next_place()
        reading.call = replace(reading.call, entered=place)
        injection = None
        if reading.is_asked:
            self._asked += 1
            self._events[place] = reading.call
            injection = None if self.on_call is None else self.on_call(reading.call, self._asked)
        if isinstance(injection, Kill):
            self._kills(thread, state, reading, words)
        elif isinstance(injection, Fail) and not (injection.after_writing and _writes(reading)):
            self._skips(thread, reading, words, -injection.errno, injected=_word(injection.errno))
        elif not self.syncs and "sync" in reading.call.name:
            self._skips(thread, reading, words, 0)
        else:
            if reading.alone and self.tracees.first_has_ended and reading.call.file is not None:
                self._late[reading.call.process] = reading.call.file.path
            state.running = _Running(reading)
            if isinstance(injection, Short):
                self._shortens(thread, state.running, words, injection.length)
            elif isinstance(injection, Fail):
                self._fails_after_writing(thread, state.running, words, injection.errno)
            resume(thread, to_the_end_of_the_call=True)

    def _skips(self, thread: int, reading: Reading, words: tuple[int, ...], result: int, *, injected: str = "") -> None:
        self._registers.skip_call(thread, words, result)
        told = replace(reading.call, exited=self._next_place(), result=result, injected=injected, data=b"")
        self._events[told.entered] = told
        resume(thread)

    def _kills(self, thread: int, state: _State, reading: Reading, words: tuple[int, ...]) -> None:
        self._events[reading.call.entered] = replace(reading.call, injected="SIGKILL")
        process = self._thread(thread, state).process
        self._registers.skip_call(thread, words, -errno.EINTR)
        os.kill(process, signal.SIGKILL)

    def _shortens(self, thread: int, running: _Running, words: tuple[int, ...], length: int) -> None:
        reading, call = running.reading, running.reading.call
        if "write" not in call.name:
            raise ValueError(f"Short({length}): {call.name} writes no bytes of its own; give it to a write")
        if length >= len(call.data):
            return
        if reading.vector is None:
            self._registers.change_call(thread, words, {2: length})
        else:
            address, parts, size = reading.vector
            running.length = (address, size)
            poke(thread, address, min(length, size))
            self._registers.change_call(thread, words, {2: parts})
        running.words = words
        reading.call = replace(call, injected="short")

    def _fails_after_writing(self, thread: int, running: _Running, words: tuple[int, ...], error: int) -> None:
        """Let a write write at a place that is told to it: so it moves no descriptor, as one that fails does not."""
        call = running.reading.call
        name = _AT_A_PLACE.get(call.name, call.name)
        assert call.offset is not None
        self._registers.change_call(thread, words, {3: call.offset}, self.machine.numbers[name])
        running.words, running.error = words, error
        running.reading.call = replace(call, injected=_word(error))

    def _ends(self, thread: int, state: _State) -> None:
        running, state.running = state.running, None
        if running is None:
            return
        result = written = self._registers.result(thread)
        if running.error is not None and result >= 0:
            result = -running.error
        if running.words is not None:
            self._registers.restore(thread, running.words, result)
        if running.length is not None:
            poke(thread, *running.length)
        reading, call = running.reading, running.reading.call
        if _LAST_RESTART >= result >= _FIRST_RESTART:
            self._events.pop(call.entered, None)  # it was interrupted by a signal and will be made again
            return
        inode = 0
        if result >= 0:
            self._obstruct(reading.obstacles)
            inode = self._found_or_made(reading, self._thread(thread, state), result)
        if reading.is_asked:
            data = call.data[: max(written, 0)]
            if reading.fills is not None and result > 0:
                data = self._filled(reading, self._thread(thread, state), result)
            self._events[call.entered] = replace(call, exited=self._next_place(), result=result, inode=inode, data=data)

    def _filled(self, reading: Reading, thread: Thread, length: int) -> bytes:
        """Return what a call has brought into a file from elsewhere."""
        call, data = reading.call, b""
        assert reading.fills is not None
        assert call.offset is not None
        assert call.file is not None
        with contextlib.suppress(OSError):
            data = thread.content(reading.fills, call.offset, length)
        if len(data) < length:
            text = f"its bytes come from another file or a pipe ({call.name}), and cannot be read"
            self._obstruct((obstacle(call.file, text),))
        return data

    def _found_or_made(self, reading: Reading, thread: Thread, result: int) -> int:
        call = reading.call
        if reading.named is not None and call.other is not None:
            self.watch.gets_a_name(reading.named, call.other.path)
        if reading.opens:
            try:
                it = thread.descriptor(result)
            except OSError:
                self._cannot_read(f"what a call ({call.name}) has opened")
                return 0
            return 0 if it is None else it.file.inode
        if reading.makes is not None:
            with contextlib.suppress(OSError):
                return os.lstat(reading.makes).st_ino
        return 0


def _word(error: int) -> str:
    return errno.errorcode.get(error, str(error))


def _writes(reading: Reading) -> bool:
    """Whether it is a write, of bytes of its own, to a place in a file."""
    return "write" in reading.call.name and reading.alone


def _close(state: _State) -> None:
    if state.thread is not None:
        state.thread.memory.close()
        state.thread = None
