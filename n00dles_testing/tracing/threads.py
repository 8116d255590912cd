"""What a traced thread sees: its memory, its descriptors, its working folder."""

from __future__ import annotations

import os
import re
import select
import struct
from dataclasses import dataclass

from .ptrace import GoneError
from .watching import Found, about_descriptor, found

__all__ = ["AT_FDCWD", "Mapped", "Memory", "Thread"]

AT_FDCWD = -100
_PAGE = 4096
_STEP = 1 << 22
_LARGEST_WRITE = 0x7FFFF000
_MOST_PARTS = 1024
_SHARED_FILE = re.compile(rb"^(\w+)-(\w+) .(.).s (\w+) \S+ \d+ +(/.*)$", re.MULTILINE)
"""A line of `/proc/N/maps` about a file that is mapped as shared. Most of the hundreds of lines are none."""
_OF_A_PROCESS = re.compile(r"/proc/(?P<process>\d+)/(?:task/\d+/)?fd/(?P<descriptor>\d+)")


class Memory:
    """The memory of one process, until it calls exec or ends."""

    def __init__(self, process: int) -> None:
        try:
            self._file = os.open(f"/proc/{process}/mem", os.O_RDONLY)
        except (FileNotFoundError, ProcessLookupError):
            raise GoneError from None

    def close(self) -> None:
        """Let go of it."""
        os.close(self._file)

    def read(self, address: int, length: int) -> bytes:
        """Return up to `length` bytes: fewer if the memory ends before, as a write of them would write."""
        length = min(length, _LARGEST_WRITE)
        parts = []
        while length > 0:
            try:
                part = os.pread(self._file, min(length, _STEP), address)
            except (OSError, OverflowError):
                break
            if not part:
                break
            parts.append(part)
            address, length = address + len(part), length - len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def text(self, address: int) -> str:
        """Return the path or name that begins here."""
        whole = b""
        while b"\0" not in whole and len(whole) <= _PAGE:
            here = address + len(whole)
            part = self.read(here, min(256, _PAGE - here % _PAGE))
            if not part:
                break
            whole += part
        return os.fsdecode(whole.partition(b"\0")[0])

    def words(self, address: int, number: int) -> tuple[int, ...]:
        """Return numbers of 8 bytes each, fewer if the memory ends before."""
        whole = self.read(address, 8 * number)
        return struct.unpack(f"<{len(whole) // 8}Q", whole[: len(whole) // 8 * 8])

    def parts(self, address: int, number: int) -> list[tuple[int, int]]:
        """Return address and length of each part of a vector (`iovec`)."""
        words = self.words(address, 2 * min(number, _MOST_PARTS))
        return list(zip(words[::2], words[1::2], strict=False))


@dataclass(frozen=True, slots=True)
class Mapped:
    """A part of a file that is mapped into memory: from where on in it, and how many bytes of it."""

    found: Found
    offset: int
    length: int
    is_writable: bool


class Thread:
    """One traced thread. What it sees is looked up anew each time, while it is stopped.

    Raises PermissionError if it is one that nobody may look at: it has told the kernel so (PR_SET_DUMPABLE), or runs a
    program that nobody may read.
    """

    def __init__(self, thread: int, process: int) -> None:
        self.thread = thread
        self.process = process
        self.memory = Memory(process)

    def descriptor(self, number: int) -> Found | None:
        """Return the file behind a descriptor; None if it is not open, or no file of a folder (a pipe)."""
        place = f"/proc/{self.thread}/fd/{number}"
        try:
            path = os.readlink(place)
            return found(path, os.stat(place)) if path.startswith("/") else None
        except FileNotFoundError:
            return None

    def position(self, number: int) -> tuple[int, int]:
        """Return where a descriptor stands in its file, and its status flags."""
        lines = about_descriptor(f"/proc/{self.thread}/fdinfo/{number}")
        return int(lines[b"pos"]), int(lines[b"flags"], 8)

    def mount(self, number: int) -> int:
        """Return the number of the mount that the file behind a descriptor is on."""
        return int(about_descriptor(f"/proc/{self.thread}/fdinfo/{number}")[b"mnt_id"])

    def umask(self) -> int:
        """Return which permissions new files do not get."""
        with open(f"/proc/{self.thread}/status") as file:
            return next((int(line.split()[1], 8) for line in file if line.startswith("Umask:")), 0)

    def content(self, number: int, offset: int, length: int) -> bytes:
        """Return bytes of the file behind a descriptor, fewer if it ends before. Raises OSError."""
        with open(f"/proc/{self.thread}/fd/{number}", "rb", 0) as file:
            file.seek(offset)
            parts = iter(lambda: file.read(min(length - file.tell() + offset, _STEP)), b"")
            return b"".join(parts)

    def has_bytes(self, number: int) -> bool:
        """Whether the pipe behind a descriptor has bytes to be read."""
        try:
            pipe = os.open(f"/proc/{self.thread}/fd/{number}", os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            waiting = select.poll()
            waiting.register(pipe, select.POLLIN)
            return any(event & select.POLLIN for _, event in waiting.poll(0))
        finally:
            os.close(pipe)

    def named(self, folder: int, text: str, *, follow: bool) -> Found | None:
        """Return what a path names, from the descriptor of a folder or `AT_FDCWD`; None if there is no such folder."""
        try:
            path = self._absolute(folder, text)
        except FileNotFoundError:
            return None
        if follow and (magic := _OF_A_PROCESS.fullmatch(path)) and int(magic["process"]) == self.process:
            return self.descriptor(int(magic["descriptor"]))
        path = _without_links(path, follow=follow)
        try:
            return found(path, os.lstat(path))
        except OSError:
            return found(path, None)

    def _absolute(self, folder: int, text: str) -> str:
        own = f"/proc/{self.process}/"
        for alias, place in (("/proc/self/", own), ("/proc/thread-self/", own), ("/dev/fd/", f"{own}fd/")):
            if text.startswith(alias):
                return place + text.removeprefix(alias)
        if text.startswith("/"):
            return text
        here = "cwd" if folder == AT_FDCWD else f"fd/{folder}"
        return os.path.join(os.readlink(f"/proc/{self.thread}/{here}"), text)

    def mapped(self, address: int = 0, length: int = 1 << 64) -> list[Mapped]:
        """Return the files that are mapped as shared anywhere between these addresses."""
        files = []
        with open(f"/proc/{self.thread}/maps", "rb") as file:
            for begin, end, right, place, path in _SHARED_FILE.findall(file.read()):
                start = int(begin, 16)
                first, last = max(start, address), min(int(end, 16), address + length)
                if first < last:
                    found = _of_a_mapping(os.fsdecode(path))
                    files.append(Mapped(found, int(place, 16) + first - start, last - first, right == b"w"))
        return files


def _of_a_mapping(path: str) -> Found:
    try:
        return found(path, os.stat(path))
    except OSError:
        return found(path.removesuffix(" (deleted)"), None)


def _without_links(path: str, *, follow: bool) -> str:
    if follow:
        return os.path.realpath(path)
    folder, name = os.path.split(path.rstrip("/") or "/")
    if name in ("", ".", ".."):
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(folder), name)
