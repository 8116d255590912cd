"""Two runs on disk, and which files hold the first of them: found out by looking, since no store says it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .child import still_alive
from .damage import holds
from .plain_files import copy_plain_files, plain_files
from .records import Record
from .scenario import Scenario
from .sqlite_damage import empty_log, is_database
from .subject import StoreSubject
from .target import StoreTarget

__all__ = ["StoredRun", "StoredRuns", "contents_of", "store_two_runs"]


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run, the texts by which it is told, and its record after each acknowledged call, the last one at the end."""

    run_id: str
    tokens: tuple[str, ...]
    history: tuple[Record, ...]

    @property
    def record(self) -> Record:
        """What was acknowledged last."""
        return self.history[-1]

    def is_in(self, content: bytes) -> bool:
        """Whether any of its texts is in a file."""
        return any(holds(content, token) for token in self.tokens)


@dataclass(frozen=True, slots=True)
class StoredRuns:
    """What lies in `folder` once two runs are saved and the store is closed.

    `files` are those that hold the first run, `own` those of them that hold no other, and `of_second` those that
    hold the second run alone. `is_readable` says whether texts can be seen in them.
    """

    folder: str
    first: StoredRun
    second: StoredRun
    content: Mapping[str, bytes]
    files: tuple[str, ...]
    own: frozenset[str]
    of_second: tuple[str, ...]
    is_readable: bool

    def copy_to(self, location: str | None, changed: Mapping[str, bytes]) -> None:
        """Lay a copy into an empty folder, with other content in some files."""
        assert location is not None
        copy_plain_files(self.folder, location)
        for file, content in changed.items():
            Path(location, file).write_bytes(content)


def contents_of(folder: str) -> dict[str, bytes]:
    """Return the content of each file below a folder, by its path in it."""
    found = {}
    for path in plain_files(folder):
        with suppress(OSError):
            found[os.fspath(path.relative_to(folder))] = path.read_bytes()
    return found


async def store_two_runs(s: Scenario, *, close: bool) -> StoredRuns:
    """Save two runs in other processes, which close the store at their end or are killed; look at the files between.

    Raises `BrokenClause` for what the store raises.
    """
    assert s.location is not None
    first, second = _planned(s.subject), _planned(s.subject)
    await _write(s, first, saves=0, close=close)
    created = contents_of(s.location)
    await _write(s, first, saves=len(first.history) - 1, close=close)
    saved = contents_of(s.location)
    await _write(s, second, saves=len(second.history) - 1, close=close)
    for file, found in contents_of(s.location).items():
        if is_database(found):
            empty_log(Path(s.location, file))
    content = contents_of(s.location)
    files = tuple(file for file in content if first.is_in(content[file]))
    is_readable = bool(files)
    if not is_readable:
        files = tuple(file for file in saved if saved[file] != created.get(file))
    unchanged = [file for file in files if content.get(file) == saved.get(file) and not second.is_in(content[file])]
    new = [file for file in content if file not in saved and not first.is_in(content[file])]
    return StoredRuns(s.location, first, second, content, files, frozenset(unchanged), tuple(new), is_readable)


def _planned(subject: StoreSubject) -> StoredRun:
    """Return a run that is to be saved: an input and two outputs, each a text that is found again."""
    tokens = tuple("".join(subject.draw.token() for _ in range(3)) for _ in range(3))
    created = Record.new({"topic": tokens[0]})
    researched = created.after({"researcher": {"facts": [tokens[1]]}})
    return StoredRun(
        subject.fresh_run_id(), tokens, (created, researched, researched.after({"writer": {"text": [tokens[2]]}}))
    )


async def _write(s: Scenario, run: StoredRun, *, saves: int, close: bool) -> None:
    done = run.history[0].completed
    outputs = []
    for record in run.history[1 : saves + 1]:
        outputs.append({node: record.completed[node] for node in record.order if node not in done})
        done = record.completed
    async with s.elsewhere() as other:
        await other.perform(write_a_run, run_id=run.run_id, inputs=run.history[0].inputs, outputs=outputs, close=close)


async def write_a_run(
    target: StoreTarget, location: str | None, run_id: str, inputs: dict[str, Any], *, outputs: list[Any], close: bool
) -> dict[str, Any]:
    """Create or load a run, and save each of `outputs`; a procedure for another process."""
    instance = await target.open(location)
    context = instance.context(await instance.load_or_create(run_id, inputs), run_id)
    still_alive()
    for nodes in outputs:
        for node, output in nodes.items():
            context.checkpoint(node, output)
        await instance.save(run_id, context)
        still_alive()
    if close:
        await instance.close()
    return {}
