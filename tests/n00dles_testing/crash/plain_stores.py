"""A correct store of three methods that imports nothing of ours and cannot load without creating, in several shapes."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any


class PlainStore:
    """One JSON file a run, with the four fields that every record has."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> dict[str, Any]:
        path = self._path(run_id)
        if not path.exists():
            self._write(path, {"run_id": run_id, "inputs": dict(inputs), "completed": {}, "order": []})
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    def save(self, run_id: str, ctx: Any) -> None:
        record = {"run_id": run_id, "inputs": ctx.inputs, "completed": ctx.completed, "order": ctx.order}
        self._write(self._path(run_id), record)

    def delete(self, run_id: str) -> None:
        self._path(run_id).unlink(missing_ok=True)

    def _path(self, run_id: str) -> Path:
        return self.folder / f"{run_id}.json"

    def _write(self, path: Path, record: dict[str, Any]) -> None:
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(record))
        temporary.replace(path)


def open_plain(location: str) -> PlainStore:
    return PlainStore(location)


async def open_async(location: str) -> PlainStore:
    return PlainStore(location)


@asynccontextmanager
async def open_managed(location: str) -> AsyncIterator[PlainStore]:
    yield PlainStore(location)


def open_by_option(path: str = "/no/such/folder") -> PlainStore:
    return PlainStore(path)


def open_by_keyword(folder: str = "/no/such/folder", *, fast: bool = False) -> PlainStore:
    return PlainStore(folder)


def open_fixed(verbose: bool = False) -> PlainStore:
    assert verbose is False  # not a location
    return PlainStore(os.environ["PLAIN_STORE"])


def open_two(location: str, name: str) -> PlainStore:
    return PlainStore(f"{location}/{name}")
