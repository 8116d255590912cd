"""Record what a program does to the files of a folder, in a form from which every state of a disk can be made.

    recording = record(lambda: my_store.save("run", state), folder)
    recording.base.after(recording.operations).listing()

Nothing is believed: at the end all operations are replayed on what was there before, and that must be, byte for byte,
what is really there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial

from ..tracing import Injection, Marks, Obstacle, Trace, TracedCall, trace
from .contents import Content
from .following import Follower, LostTrack, Unfollowable
from .operations import Marked, Operation, SyncAll
from .ordering import alone, orders
from .tree import Draft, Tree

__all__ = ["Recorder", "Recording", "Unfollowable", "record"]


@dataclass(frozen=True, slots=True)
class Recording:
    """What was there before, and what was done to it, in order. `status` is how the program ended, -9 if killed.

    `base` also knows, without a name, the folders and symbolic links that the operations make, so that any part of them
    can be applied to it.
    """

    base: Tree
    operations: tuple[Operation, ...]
    status: int


def record(
    run: Callable[[], object],
    folder: str | os.PathLike[str],
    *,
    marks: Marks | None = None,
    excused: Collection[str] = (),
    on_call: Callable[[TracedCall, int], Injection | None] | None = None,
    time_limit: float = 60.0,
) -> Recording:
    """Call `run` in a traced fork, and return what it did to the files of a folder.

    See `Recorder` for `excused`, and `trace` for the rest and for what it raises. Raises `Unfollowable`.
    """
    recorder = Recorder(folder, excused=excused)
    return recorder.recording(trace(run, recorder.root, marks=marks, on_call=on_call, time_limit=time_limit))


class Recorder:
    """Reads a folder before a program runs; then makes a `Recording` of the program's trace.

    `excused` are names, as patterns like `*.lock` (of a name alone, or of a path below the folder), of what is no data
    and may be missing after a power loss. They are left out everywhere, and so is SQLite's shared memory: a file whose
    name ends in `-shm`, beside the database or its log. What has another name as well, or gets one, is not excused.
    Raises `Unfollowable` if the folder cannot be read.
    """

    def __init__(self, folder: str | os.PathLike[str], *, excused: Collection[str] = ()) -> None:
        self.root = os.path.realpath(folder)
        self._excused = tuple(excused)
        self._base = self._read()
        self._numbers = {
            os.lstat(os.path.join(self.root, path)).st_ino: inode for path, inode in [("", 1), *self._base.names()]
        }

    def recording(self, traced: Trace) -> Recording:
        """Return what the traced program did; called once it has ended, and before anybody else changes the folder.

        Raises `Unfollowable` with a sentence that says of which file it is not known.
        """
        if traced.timed_out:
            raise Unfollowable("the program was still running at the time limit, and was killed")
        if traced.outside:
            raise Unfollowable(f"it keeps something outside of its location: {traced.outside[0]}")
        real = self._read()
        problem = ""
        for order in orders(traced.events, partial(self._found, real)):
            follower = Follower(self._base, self._numbers, self.root, alone(traced.events))
            try:
                follower.follow(order)
            except LostTrack as error:
                problem = problem or str(error)
                continue
            excuses = _Excuses(self._excused, follower.names)
            self._refuse_obstacles(traced.obstacles, excuses)
            difference = _difference(follower.draft.tree(), real, excuses)
            if difference is None:
                return self._made(follower, excuses, traced.status)
            problem = problem or f"replaying all calls does not give what is there: {difference}"
        raise Unfollowable(problem)

    def _read(self) -> Tree:
        try:
            return Tree.read(self.root)
        except OSError as error:
            raise Unfollowable(f"the folder that is recorded cannot be read: {error}") from error

    def _found(self, real: Tree, number: int) -> bytes:
        """Return the bytes of the real file that has this number, none if it is gone."""
        for path, inode in real.names():
            node = real.node(inode)
            if isinstance(node, Content) and os.lstat(os.path.join(self.root, path)).st_ino == number:
                return node.data()
        return b""

    def _refuse_obstacles(self, obstacles: Collection[Obstacle], excuses: _Excuses) -> None:
        for obstacle in obstacles:
            if not excuses.name(os.path.relpath(obstacle.path, self.root)):
                raise Unfollowable(obstacle.text)

    def _made(self, follower: Follower, excuses: _Excuses, status: int) -> Recording:
        operations = tuple(
            operation
            for operation in follower.operations
            if isinstance(operation, Marked | SyncAll) or operation.inode not in excuses.inodes
        )
        base = Draft(self._base.without(excuses.inodes))
        for operation in operations:
            base.expect(operation)
        return Recording(base.tree(), operations, status)


class _Excuses:
    """Which files are no data. `names` are all names that each inode ever had, `paths` all of these."""

    def __init__(self, patterns: tuple[str, ...], names: dict[int, set[str]]) -> None:
        self._patterns = patterns
        self.paths = {path for paths in names.values() for path in paths}
        self.inodes = {inode for inode, paths in names.items() if all(map(self.name, paths))}

    def name(self, path: str) -> bool:
        """Return whether a file of this name is excused: for its own sake, or because it is in such a folder."""
        if path.endswith("-shm") and not self.paths.isdisjoint((path[:-4], path[:-4] + "-wal")):
            return True
        parts = path.split("/")
        return any(
            fnmatchcase(parts[depth], pattern) or fnmatchcase("/".join(parts[: depth + 1]), pattern)
            for depth in range(len(parts))
            for pattern in self._patterns
        )


def _difference(replayed: Tree, real: Tree, excuses: _Excuses) -> str | None:
    """Return the first difference between what was replayed and what is there, in words, or None."""
    mine = {path: inode for path, inode in replayed.names() if inode not in excuses.inodes}
    theirs = {path: inode for path, inode in real.names() if path in mine or not excuses.name(path)}
    partners: dict[int, int] = {}
    for path in sorted(mine.keys() | theirs.keys()):
        if path not in theirs:
            return f"`{path}` is not there, and should be"
        if path not in mine:
            return f"`{path}` is there, and was not made by any call that was seen"
        one, other = replayed.node(mine[path]), real.node(theirs[path])
        if isinstance(one, Content) and isinstance(other, Content):
            if (offset := one.first_difference(other)) is not None:
                return f"`{path}` has {other.size} bytes (replayed: {one.size}) and differs from byte {offset} on"
        elif type(one) is not type(other) or (not isinstance(one, dict) and one != other):
            return f"`{path}` is another kind of file, or another link"
        if partners.setdefault(mine[path], theirs[path]) != theirs[path]:
            return f"`{path}` does not share its file with the names that it should share it with"
    if len(set(partners.values())) != len(partners):
        return "two names share a file, and should not"
    return None
