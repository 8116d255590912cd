"""A store for each test, and what is said of a test that leaves its runs in the working folder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from n00dles.config import own_defaults
from n00dles.stores.base import StateStore
from n00dles.stores.sqlite import SQLiteStateStore

__all__ = ["advice", "file_of", "left_in", "store_of_its_own"]

_LONGEST = 60
_SHOWN = 3


def file_of(item: pytest.Item, folder: Path, suffix: str) -> Path:
    """Return the file of a test in `folder`, which a person recognises by its name."""
    name = re.sub(r"\W+", "-", item.name)[:_LONGEST].strip("-")
    # Tests of two modules, and long names, may be written alike; a test that is run again starts anew, too.
    number = 1
    while (file := folder / f"{name}{f'-{number}' if number > 1 else ''}{suffix}").exists():
        number += 1
    return file


@contextmanager
def store_of_its_own(item: pytest.Item, folder: Path) -> Iterator[StateStore]:
    """Have `run` and `resume` use an empty store while a test runs. Its file is made at the first use."""
    store = SQLiteStateStore(file_of(item, folder, ".db"))
    with own_defaults(state_store=store):
        yield store


def left_in(store: StateStore, folder: Path) -> Path | None:
    """Return the file of the default store if it is in this folder; one elsewhere is where a test has moved to."""
    if not isinstance(store, SQLiteStateStore):
        return None
    _, path = cast("tuple[str, str]", store.place)
    file = Path(path)
    return file if file.parent == folder.resolve() and file.exists() else None


def advice(tests: Sequence[str]) -> str:
    """Say which tests have left runs in the working folder, and what to do about it."""
    distinct = list(dict.fromkeys(tests))
    more = f" (and so did {len(distinct) - _SHOWN} more)" if len(distinct) > _SHOWN else ""
    return (
        f"{'; '.join(distinct[:_SHOWN])}{more}: that is the default store, and later tests find these runs there. Give "
        "such a test the fixture n00dles_store, or have it configure() a store."
    )
