"""Workers of the conformance suite are forks here: see `conformance.warm_workers`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.warm_workers import WarmWorkers, start_fresh
from n00dles_testing import interpreters


@pytest.fixture(scope="session", autouse=True)
def _warm_workers() -> Iterator[None]:
    warm = WarmWorkers()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpreters, "start_interpreter", warm.start_interpreter)
        yield
    warm.close()


@pytest.fixture
def fresh_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have workers started as fresh interpreters, as users have them."""
    monkeypatch.setattr(interpreters, "start_interpreter", start_fresh)
