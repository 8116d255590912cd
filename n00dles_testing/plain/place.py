"""The folder of one run of a home-made loop, as a store that can be asked what the loop has stored there."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from n00dles.context import PipelineContext
from n00dles.errors import ConfigurationError
from n00dles.stores.base import StateStore

from .writes import unseen

__all__ = ["Place", "Stored"]

Stored = Callable[[Any], Iterable[str]]
"""Names the functions whose outputs a loop has stored in a folder."""


class Place(StateStore):
    """One run: `folder` is the loop's own; beside it lies what this package has to know from life to life.

    The loop does not know of it, and saves nothing through it.
    """

    def __init__(self, location: str, names: Sequence[str], stored: Stored | None, kind: type) -> None:
        self._location = Path(location)
        self._names = names
        self._stored = stored
        self._kind = kind
        self.folder = self._location / "folder"
        self.folder.mkdir(exist_ok=True)

    @property
    def folder_for_loop(self) -> Any:
        """The folder, as a path or as the text that the loop wants."""
        return self._kind(self.folder)

    @property
    def is_silent(self) -> bool:
        """Whether it cannot be told what the loop has stored."""
        return self._stored is None

    @property
    def is_empty(self) -> bool:
        """Whether nothing lies in the folder."""
        return not any(self.folder.iterdir())

    def begin(self, run_id: str, inputs: Mapping[str, Any]) -> bool:
        """Note the inputs of the run, and return whether this is its first life."""
        if self._note() is not None:
            return False
        self._write({"run_id": run_id, "inputs": dict(inputs), "finished": False})
        return True

    def inputs(self) -> dict[str, Any]:
        """Return the inputs that the run began with."""
        note = self._note()
        return {} if note is None else dict(note["inputs"])

    def finish(self) -> None:
        """Note that the loop has returned."""
        self._write({**(self._note() or {}), "finished": True})

    def stored(self) -> list[str] | None:
        """Return the functions whose outputs the loop has stored, None if it cannot be told.

        Raises `ConfigurationError` for a name that is of none, and whatever the loop's own function raises.
        """
        if self._stored is None:
            return None
        with unseen():
            found = list(self._stored(self.folder_for_loop))
        if strange := [name for name in found if name not in self._names]:
            raise ConfigurationError(
                f"stored= named {strange[0]!r}, which is none of the functions ({', '.join(self._names)}); it has to "
                "return their names."
            )
        return [name for name in self._names if name in found]

    async def load(self, run_id: str) -> PipelineContext | None:
        """Return the run with what the loop has stored of it, None if it has not begun."""
        note = self._note()
        if note is None:
            return None
        found = self.stored()
        context = _Found(run_id, note["inputs"], dict.fromkeys(found or ()), found or ())
        context.is_known = found is not None
        for name in found or ():
            context.record(name)
        context.status = "finished" if note["finished"] else "running"
        return context

    async def load_or_create(self, run_id: str, inputs: Mapping[str, Any]) -> PipelineContext:
        """Return the run, begun if it has not."""
        self.begin(run_id, inputs)
        found = await self.load(run_id)
        assert found is not None
        return found

    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        """Refuse: the loop saves by itself."""
        raise NotImplementedError("a home-made loop saves by itself")

    async def delete(self, run_id: str) -> None:
        """Leave it to whoever removes the location."""

    @property
    def _file(self) -> Path:
        return self._location / "begun.json"

    def _note(self) -> dict[str, Any] | None:
        try:
            return json.loads(self._file.read_text(encoding="utf-8"))  # type: ignore[no-any-return]
        except FileNotFoundError:
            return None

    def _write(self, note: Mapping[str, Any]) -> None:
        written = self._file.with_suffix(".new")
        written.write_text(json.dumps(note), encoding="utf-8")
        os.replace(written, self._file)


class _Found(PipelineContext):
    """What was found in a place; `is_known` says whether the loop has told what it has stored."""

    is_known = True
