"""One open store for all items of a target, in each process of pytest: to open it for every item would take long."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from n00dles.errors import ConfigurationError

from ..conformance.registry import Clause
from ..conformance.runner import Runner, open_runner
from ..conformance.target import sqlite_path
from ..verdicts import ClauseResult

__all__ = ["StoreRunners", "UnusableTargetError"]


class UnusableTargetError(Exception):
    """A target cannot be opened; the message says why, and what to do."""


@dataclass
class _Held:
    """What was opened, in which surroundings, and how it is ended."""

    surroundings: object
    end: ExitStack
    runner: Runner | None = None
    folder: Path | None = None
    refusal: str = ""


class StoreRunners:
    """Opens each target when it is first needed, and ends all with pytest.

    A store's processes inherit the environment of the moment. When a fixture has changed that since, the target is
    opened anew, so that what a test sets reaches the store.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        """Take options of `open_runner`, for all targets."""
        self._options = options
        self._said: dict[str, dict[str, Any]] = {}
        self._held: dict[str, _Held] = {}

    @classmethod
    def of(cls, config: pytest.Config) -> StoreRunners:
        """Return those of this pytest; they are ended when it is unconfigured, also after Ctrl-C."""
        if _key not in config.stash:
            names = ("seed", "limit")
            runners = cls({name: config.getoption(f"n00dles_{name}") for name in names})
            config.stash[_key] = runners
            config.add_cleanup(runners.end)
        return config.stash[_key]

    def say(self, target: str, **said: Any) -> None:
        """Note what is said of a target (`claims`, `reader` and `server` of `open_runner`), before it is opened."""
        self._said[target] = said

    def open(self, target: str, make_folder: Callable[[], Path] | None = None) -> Runner:
        """Return what checks a target; `make_folder` makes the folder for its locations, else they are temporary.

        Raises `UnusableTargetError`, each time, if it cannot be opened: trying that again could take as long again.
        """
        surroundings = _surroundings()
        held = self._held.get(target)
        if held is None or held.surroundings != surroundings:
            if held is not None:
                held.end.close()
            held = self._held[target] = self._opened(target, surroundings, make_folder)
        if held.runner is None:
            raise UnusableTargetError(held.refusal)
        return held.runner

    def check(self, target: str, clause: Clause, make_folder: Callable[[], Path] | None = None) -> ClauseResult:
        """Check one clause. The files of one that holds are removed; those of one that fails are left for a look."""
        result = self.open(target, make_folder).check(clause)
        held = self._held[target]
        if held.folder is not None and not result.findings:
            for location in held.folder.glob(f"*/{clause.id}-*"):
                shutil.rmtree(location, ignore_errors=True)
        return result

    def kept(self, target: str, clause: Clause) -> list[Path]:
        """Return the locations of a clause that were kept."""
        held = self._held.get(target)
        return [] if held is None or held.folder is None else sorted(held.folder.glob(f"*/{clause.id}-*"))

    def end(self) -> None:
        """End all processes."""
        held, self._held = self._held, {}
        for each in held.values():
            with contextlib.suppress(Exception):
                each.end.close()

    def _opened(self, target: str, surroundings: object, make_folder: Callable[[], Path] | None) -> _Held:
        held = _Held(surroundings, ExitStack())
        try:
            if make_folder is not None and _may_be_elsewhere(target):
                held.folder = make_folder()
            said = self._said.get(target, {})
            opening = open_runner(target, folder=held.folder, **self._options, **said)
            held.runner = held.end.enter_context(opening)
        except ConfigurationError as error:
            held.refusal = str(error)
        return held


def _may_be_elsewhere(target: str) -> bool:
    """Whether its locations may lie anywhere: those of a SQLite URL lie on the file system that it names."""
    return "://" not in target or sqlite_path(target) is None


def _surroundings() -> object:
    """Return what a new process would inherit and find; pytest's own variables change with every test."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return environment, os.getcwd()


_key: pytest.StashKey[StoreRunners] = pytest.StashKey()
