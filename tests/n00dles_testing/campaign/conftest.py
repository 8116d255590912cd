"""Broken executors patch the one of n00dles while a life lasts; one that is stopped in the middle never ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from n00dles import api, attempts, checkpointing, executor

PLACES = (api, attempts, checkpointing, executor, checkpointing.Checkpointer, executor.Execution, attempts.Worker)


@pytest.fixture(autouse=True)
def _nothing_stays_patched() -> Iterator[None]:
    """Put back what a life that was given up has left: tests after this one are about the executor as it is."""
    before = [dict(vars(place)) for place in PLACES]
    yield
    for place, names in zip(PLACES, before, strict=True):
        for name, value in names.items():
            if vars(place).get(name) is not value:
                setattr(place, name, value)
