"""A factory of fresh stores, for each kind of ours."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from n00dles import InMemoryStateStore, SQLiteStateStore
from tests.n00dles.stores.each import Factory


@pytest.fixture(params=["memory", "sqlite"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Factory:
    if request.param == "memory":
        return InMemoryStateStore
    numbers = itertools.count()
    return lambda: SQLiteStateStore(tmp_path / f"{next(numbers)}.db")
