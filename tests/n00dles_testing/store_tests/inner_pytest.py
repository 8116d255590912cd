"""A pytest of its own, in an empty folder, with the plugin and some stores."""

from __future__ import annotations

from pathlib import Path

import pytest

import n00dles_testing.store_tests.classes  # noqa: F401 - pytester forgets what an inner pytest has imported first
from n00dles_testing.conformance import implemented

ROOT = Path(__file__).parents[3]
NAMES = [*(clause.id for clause in implemented()), "claims"]
"""The items of each store."""
FEW = "S01 or S05"
STORES = """
import os
import pathlib
import time

from n00dles import InMemoryStateStore
from n00dles_testing.conformance.mutants.correct import JSONFiles
from n00dles_testing.conformance.mutants.s05 import GivesOutItsCache as Caching


class InMemory(InMemoryStateStore):
    # Breaks S07, S12 and S17: a run that was deleted is not created anew.
    def __init__(self):
        super().__init__()
        self.deleted = set()

    async def load_or_create(self, run_id, inputs):
        if run_id in self.deleted:
            raise KeyError(run_id)
        return await super().load_or_create(run_id, inputs)

    async def delete(self, run_id):
        await super().delete(run_id)
        self.deleted.add(run_id)


class Blocks(JSONFiles):
    def save(self, run_id, context):
        pathlib.Path("blocked").write_text(str(os.getpid()))
        time.sleep(60)


def raises(location):
    raise RuntimeError("no database today")


def hangs(location):
    with open("opened", "a") as file:
        file.write("once ")
    time.sleep(60)
"""
"""Correct is `JSONFiles`; `Caching` breaks S05."""


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(stores=STORES)
    return pytester


def run(inner: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run pytest in this process: to start another one takes longer than most of what is tried."""
    return inner.runpytest_inprocess("-p", "no:randomly", *installed(), *arguments)


def tried(result: pytest.RunResult) -> dict[str, int]:
    """Return the outcomes; what was not asked for is none."""
    return {outcome: count for outcome, count in result.parseoutcomes().items() if outcome != "deselected"}


def installed() -> list[str]:
    """Load the plugin by hand where the package is not installed: pytest refuses to load it twice."""
    from importlib.metadata import entry_points

    there = any(entry.value == "n00dles_testing.plugin" for entry in entry_points(group="pytest11"))
    return [] if there else ["-p", "n00dles_testing.plugin"]
