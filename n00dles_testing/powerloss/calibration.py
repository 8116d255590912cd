"""The calibration of the power-loss explorer: ways of saving of which it is known what they lose, and what it finds.

A fault in a row that must be clean says that the explorer makes up states which no disk can hold; a fault that is
missing says that it tries too few. In both cases nothing that it says about a store can be believed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryDirectory

from ..tracing import Marks
from .comparing import Expected
from .examining import Examiner
from .exploring import PowerLossFinding, PowerLossReport, explore_power_loss
from .faults_found import FaultKind
from .judging import Judge, rules_for
from .models import MODELS
from .protocols import PROTOCOLS, Loaded, SaveProtocol
from .recording import Recording, Unfollowable, record

__all__ = ["ROWS", "Calibrated", "Cell", "Required", "Row", "calibrate", "calibrate_number"]

SAVES = (1, 2, 3)
"""The values that the workload saves: a creation, a replacement, and one more."""
BEFORE = 7
"""The value that is there before, in a row that replaces one."""
TIME_LIMIT = 30.0
MOST_SECONDS = 600.0
"""Only `budget` ends an exploration: what is found must not depend on how fast a machine is."""

_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - only folders of a random name are made in it


@dataclass(frozen=True, slots=True)
class Required:
    """What must be found in a cell of the table, and what else may be."""

    must: frozenset[FaultKind] = frozenset()
    may: frozenset[FaultKind] = frozenset()

    def __str__(self) -> str:
        return ", ".join(kind for kind in FaultKind if kind in self.must) or "clean"

    def deviation(self, found: frozenset[FaultKind]) -> str:
        """Say in which way something else was found, or nothing."""
        told = []
        if missed := self.must - found:
            told.append(f"{_names(missed)} not found: the explorer is too weak")
        if alarms := found - self.must - self.may:
            told.append(f"{_names(alarms)} found, and cannot be: the model allows what no disk does")
        return "; ".join(told)


@dataclass(frozen=True, slots=True)
class Row:
    """A way of saving, and what is required of each model. With `over` a value is there before the first save.

    `budget` counts states, for each model, and `recoveries` those whose recovery is crashed as well.
    """

    protocol: SaveProtocol
    required: Mapping[str, Required]
    over: bool = False
    budget: int = 600
    recoveries: int = 20

    @property
    def title(self) -> str:
        """Return how the row is called."""
        return f"{self.protocol.title}{', over a value that is there' if self.over else ''}"


@dataclass(frozen=True, slots=True)
class Cell:
    """What was found in one row under one model. `stories` has the smallest case of each kind, in words."""

    model: str
    found: frozenset[FaultKind]
    tried: int
    at_least: int | None
    seconds: float
    stories: tuple[str, ...] = ()
    unknown: str = ""

    def __str__(self) -> str:
        if self.unknown:
            return "UNKNOWN"
        return ", ".join(kind for kind in FaultKind if kind in self.found) or "clean"


@dataclass(frozen=True, slots=True)
class Calibrated:
    """One row, tried under every model; `operations` counts what the workload did to its files."""

    title: str
    cells: tuple[Cell, ...]
    operations: int
    seconds: float
    deviations: tuple[str, ...]


_CORRUPT, _LOST_ACK = frozenset({FaultKind.CORRUPT}), frozenset({FaultKind.LOST_ACK})
CLEAN = Required()
LOST = Required(_LOST_ACK)
BROKEN = Required(_CORRUPT, may=_LOST_ACK | {FaultKind.MIXED})
"""What is not synced at all is lost, too, and its parts are mixed; that it is CORRUPT is what has to be seen."""
NOT_VOUCHED_FOR = Required(may=_CORRUPT | {FaultKind.RECOVERY})
"""A database for whose every state nobody vouches: what does not open is told and not required; the rest is."""
NO_NAME = Required(_LOST_ACK, NOT_VOUCHED_FOR.may)
"""The same, where the names of its files are never synced."""


def _row(
    name: str, kill: Required, ext4: Required, journaled: Required, strict: Required, *, over: bool = False
) -> Row:
    required = {"kill": kill, "ext4": ext4, "journaled": journaled, "strict": strict}
    if name == "duckdb":  # which takes forty times as long as the others to open
        return Row(PROTOCOLS[name], required, over, budget=24, recoveries=1)
    return Row(PROTOCOLS[name], required, over)


ROWS = (
    _row("overwrite", Required(_CORRUPT), BROKEN, BROKEN, BROKEN),
    _row("rename", CLEAN, Required(_CORRUPT | _LOST_ACK), BROKEN, BROKEN),
    _row("rename", CLEAN, LOST, BROKEN, BROKEN, over=True),
    _row("fsync-rename", CLEAN, LOST, LOST, LOST),
    _row("fsync-rename-fsync", CLEAN, CLEAN, CLEAN, CLEAN),
    _row("sqlite-full", CLEAN, LOST, LOST, LOST),
    _row("sqlite-extra", CLEAN, CLEAN, CLEAN, CLEAN),
    _row("sqlite-wal-full", CLEAN, CLEAN, CLEAN, CLEAN),
    _row("sqlite-wal-normal", CLEAN, LOST, LOST, LOST),
    _row("sqlite-off", CLEAN, BROKEN, BROKEN, BROKEN),
    _row("lmdb", NOT_VOUCHED_FOR, NOT_VOUCHED_FOR, NOT_VOUCHED_FOR, NO_NAME),
    _row("lmdb", CLEAN, CLEAN, CLEAN, CLEAN, over=True),
    _row("duckdb", NOT_VOUCHED_FOR, NOT_VOUCHED_FOR, NOT_VOUCHED_FOR, NO_NAME),
    _row("duckdb", NOT_VOUCHED_FOR, NOT_VOUCHED_FOR, NOT_VOUCHED_FOR, NO_NAME, over=True),
)
"""The table. Under `kill` all is there that was written, so only what is not replaced whole can be caught half-way."""


def calibrate(row: Row, *, seed: int = 0, on_cell: Callable[[Cell], None] = lambda cell: None) -> Calibrated:
    """Record a workload of a row, explore it under every model, and say what deviates from what is required.

    `on_cell` is told of each cell, for progress. It forks, so call it in a process with one thread.
    """
    began = time.monotonic()
    with _scratch() as folder:
        try:
            recording = _recorded_workload(row, os.path.join(folder, "workload"))
        except Unfollowable as error:
            operations, cells = 0, [Cell(model, frozenset(), 0, None, 0.0, unknown=str(error)) for model in MODELS]
        else:
            operations = len(recording.operations)
            cells = list(_explored(row, recording, folder, seed=seed, on_cell=on_cell))
    deviations = [f"{row.title}: {cell.model}: {told}" for cell in cells if (told := _deviation(row, cell))]
    return Calibrated(row.title, tuple(cells), operations, time.monotonic() - began, tuple(deviations))


def calibrate_number(number: int, *, seed: int) -> Calibrated:
    """Calibrate the row of that number: the rows themselves hold functions, which no process can be sent."""
    return calibrate(ROWS[number], seed=seed)


def _deviation(row: Row, cell: Cell) -> str:
    return f"unknown: {cell.unknown}" if cell.unknown else row.required[cell.model].deviation(cell.found)


def _recorded_workload(row: Row, folder: str) -> Recording:
    os.mkdir(folder)
    if row.over:
        record(partial(_save_before, row.protocol, folder), folder, excused=row.protocol.excused)
    marks = Marks()

    def work() -> None:
        place = row.protocol.open(folder)
        for number in SAVES:
            marks.put(f"INV {number}")
            place.save(number)
            marks.put(f"ACK {number}")
        place.close()

    recording = record(work, folder, marks=marks, excused=row.protocol.excused)
    if recording.status != 0:
        raise Unfollowable(f"the workload ended with status {recording.status}")
    return recording


def _explored(
    row: Row, recording: Recording, folder: str, *, seed: int, on_cell: Callable[[Cell], None]
) -> Iterator[Cell]:
    def recovery(place: str) -> Recording:
        return record(partial(_open_and_load, row.protocol, place), place, excused=row.protocol.excused)

    expected = Expected[Loaded](BEFORE if row.over else None, {str(number): number for number in SAVES})
    with Examiner(row.protocol.open, time_limit=TIME_LIMIT) as examiner:
        rules = rules_for(expected, is_mixed=lambda value: isinstance(value, tuple))
        judge = Judge(examiner, recovery, rules, folder=folder, seed=seed, recoveries=row.recoveries)
        for model in MODELS.values():
            began = time.monotonic()
            try:
                report = explore_power_loss(
                    recording,
                    model,
                    judge.under(model),
                    budget=row.budget,
                    seconds=MOST_SECONDS,
                    seed=seed,
                    folder=os.path.join(folder, "state"),
                )
            except Unfollowable as error:
                unknown = f"how it opens cannot be followed: {error}"
                cell = Cell(model.name, frozenset(), 0, None, time.monotonic() - began, unknown=unknown)
            else:
                cell = _cell(report, time.monotonic() - began)
            on_cell(cell)
            yield cell


def _cell(report: PowerLossReport, seconds: float) -> Cell:
    return Cell(
        report.model.name,
        frozenset(finding.fault.kind for finding in report.findings),
        report.tried,
        report.at_least,
        seconds,
        tuple(map(_story, report.findings)),
    )


def _story(finding: PowerLossFinding) -> str:
    fault = finding.fault
    second = [line for line in fault.details if line.startswith("lost in the second")][:1]
    return f"{fault.kind}: {finding.words}. {'; '.join([fault.message, *second])}"


def _save_before(protocol: SaveProtocol, folder: str) -> None:
    place = protocol.open(folder)
    place.save(BEFORE)
    place.close()


def _open_and_load(protocol: SaveProtocol, folder: str) -> None:
    place = protocol.open(folder)
    place.load()
    place.close()


def _names(kinds: frozenset[FaultKind]) -> str:
    return ", ".join(kind for kind in FaultKind if kind in kinds)


@contextmanager
def _scratch() -> Iterator[str]:
    """Give a folder in memory if there is one: hundreds of states are written, and synced, and nobody keeps them."""
    memory = _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) else None
    with TemporaryDirectory(prefix="n00dles-calibration-", dir=memory) as folder:
        yield folder
