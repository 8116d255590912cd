"""A call as it begins: what it asks for, before it is known what comes of it."""

from __future__ import annotations

from dataclasses import dataclass

from .calls import File, Obstacle, TracedCall
from .threads import AT_FDCWD, Thread
from .watching import Found, Watch

__all__ = ["Entry", "Reading", "obstacle"]

_LAST_STREAM = 2


@dataclass(slots=True)
class Reading:
    """What is read of a call on a watched file.

    `alone`: it changes something, and must not overlap another call that does, else it is not known which came first,
    nor whose an inode was that the kernel gives again. `obstacles` stand if the call succeeds. If it does, the inode is
    that of the descriptor it returns (`opens`), or that of the path it has made (`makes`). `is_asked`: whether it is
    one that `on_call` is asked about. `vector` is the first part that has bytes, if a write is made of parts: where its
    length stands in memory, how many parts there are up to it, and its length. `fills`: the descriptor of a file from
    which it is read, once the call has ended, what came into it.
    """

    call: TracedCall
    alone: bool = False
    obstacles: tuple[Obstacle, ...] = ()
    opens: bool = False
    makes: str | None = None
    named: Found | None = None
    vector: tuple[int, int, int] | None = None
    fills: int | None = None
    is_asked: bool = True


class Entry:
    """A call as it begins, its arguments not yet understood."""

    def __init__(self, name: str, arguments: tuple[int, ...], thread: Thread, watch: Watch) -> None:
        self.name = name
        self.arguments = arguments
        self.thread = thread
        self.watch = watch

    def whole(self, index: int) -> int:
        """Return an argument of 4 bytes, with its sign."""
        word = self.arguments[index] & 0xFFFFFFFF
        return word - (1 << 32) if word >> 31 else word

    def signed(self, index: int) -> int:
        """Return an argument of 8 bytes, with its sign."""
        word = self.arguments[index]
        return word - (1 << 64) if word >> 63 else word

    def descriptor(self, index: int) -> Found | None:
        """Return the file of a descriptor, if it is watched."""
        it = self.thread.descriptor(self.whole(index))
        return it if it is not None and self.watch.sees(it) else None

    def written(self, index: int) -> Found | None:
        """Return the file of a descriptor, if it is watched; take down another one, which may be open since long ago.

        The three standard streams are left out: whoever started the program has said where they go.
        """
        number = self.whole(index)
        it = self.thread.descriptor(number)
        if it is None or self.watch.sees(it):
            return it
        outside = self.watch.outside
        if number > _LAST_STREAM and it.file.kind == "file" and it.links and not outside.knows(it.file.path):
            outside.is_opened(it.file.path, self.thread.position(number)[1])
        return None

    def named(self, folder: int | None, path: int, *, follow: bool) -> Found | None:
        """Return the file of a path, from the argument of a folder or the working folder, watched or not."""
        text = self.thread.memory.text(self.arguments[path])
        return self.thread.named(AT_FDCWD if folder is None else self.whole(folder), text, follow=follow)

    def named_folder(self, index: int) -> Found | None:
        """Return the folder from which a path is meant, watched or not: that of a descriptor, or the working folder."""
        return self.thread.named(self.whole(index), ".", follow=True)

    def new_mode(self, permissions: int, kind: int) -> int:
        """Return the mode of a new file of some kind (as `stat.S_IFREG`) for which these permissions are wanted."""
        return kind | (permissions & 0o7777 & ~self.thread.umask())

    def call(self, file: File | None, **more: object) -> TracedCall:
        """Return the call, not yet placed in the order."""
        return TracedCall(0, self.thread.thread, self.name, file, process=self.thread.process, **more)  # type: ignore[arg-type]


def obstacle(file: File, what: str) -> Obstacle:
    """Return an obstacle whose sentence begins with the file."""
    return Obstacle(file.path, f"{file.path}: {what}")
