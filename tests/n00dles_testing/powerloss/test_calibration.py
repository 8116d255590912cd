"""The table of the calibration comes out exactly, whatever the seed: no false alarm in a clean row, no fault missed."""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from unittest import mock

import pytest

from n00dles_testing.powerloss import states
from n00dles_testing.powerloss.calibration import ROWS, Calibrated, Required, Row, calibrate, calibrate_number
from n00dles_testing.powerloss.faults_found import FaultKind
from n00dles_testing.powerloss.models import MODELS
from n00dles_testing.powerloss.protocols import SaveProtocol
from n00dles_testing.tracing import why_not

ONCE = 1_000_000


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    """A process that has one thread, as its tracer must have."""
    if reason := why_not():
        pytest.skip(reason)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("number", range(len(ROWS)), ids=lambda number: ROWS[number].title.replace(" ", "-"))
def test_a_row_comes_out_as_required(number: int, pool: ProcessPoolExecutor) -> None:
    if reason := ROWS[number].protocol.why_not():
        pytest.skip(reason)
    seed = zlib.crc32(ROWS[number].title.encode()) % ONCE

    row = pool.submit(calibrate_number, number, seed=seed).result()

    assert row.deviations == ()
    assert [cell.unknown for cell in row.cells] == [""] * len(MODELS)
    assert all(cell.tried > 3 for cell in row.cells)


def row_called(title: str) -> Row:
    return next(row for row in ROWS if row.title == title)


def with_a_model_that_allows_too_much() -> tuple[str, ...]:
    lax = replace(MODELS["ext4"], flushes_before_replacing=False)
    with mock.patch.dict(MODELS, ext4=lax):
        return calibrate(row_called("write temp, rename, no sync, over a value that is there")).deviations


def with_too_few_states() -> tuple[str, ...]:
    with mock.patch.object(states, "ends", return_value=()):
        return calibrate(replace(row_called("write temp, fsync, rename"), budget=1)).deviations


def test_a_model_that_allows_what_no_disk_does_is_noticed(pool: ProcessPoolExecutor) -> None:
    deviations = pool.submit(with_a_model_that_allows_too_much).result()

    assert deviations == (
        "write temp, rename, no sync, over a value that is there: ext4: "
        "CORRUPT found, and cannot be: the model allows what no disk does",
    )


def test_an_explorer_that_tries_too_little_is_noticed(pool: ProcessPoolExecutor) -> None:
    deviations = pool.submit(with_too_few_states).result()

    assert deviations == tuple(
        f"write temp, fsync, rename: {model}: LOST_ACK not found: the explorer is too weak"
        for model in ("ext4", "journaled", "strict")
    )


def test_a_way_of_saving_that_cannot_be_followed_is_unknown_and_deviates(pool: ProcessPoolExecutor) -> None:
    row = pool.submit(with_a_shared_map).result()

    assert [str(cell) for cell in row.cells] == ["UNKNOWN"] * len(MODELS)
    assert len(row.deviations) == len(MODELS)
    assert "unknown: " in row.deviations[0]
    assert "map" in row.deviations[0]


class InASharedMap:
    def __init__(self, folder: str) -> None:
        self.path = Path(folder) / "number"

    def load(self) -> int | None:
        return self.path.read_bytes()[0] if self.path.exists() else None

    def save(self, number: int) -> None:
        self.path.write_bytes(b"\0" * mmap.PAGESIZE)
        with self.path.open("r+b") as file, mmap.mmap(file.fileno(), mmap.PAGESIZE) as mapped:
            mapped[0] = number
            mapped.flush()

    def close(self) -> None:
        """Nothing is open."""


def with_a_shared_map() -> Calibrated:
    protocol = SaveProtocol("map", "a shared map", InASharedMap)
    return calibrate(Row(protocol, dict.fromkeys(MODELS, Required())))


THE_TABLE = """
overwrite in place, no sync | CORRUPT | CORRUPT | CORRUPT | CORRUPT
write temp, rename, no sync | clean | CORRUPT, LOST_ACK | CORRUPT | CORRUPT
write temp, rename, no sync, over a value that is there | clean | LOST_ACK | CORRUPT | CORRUPT
write temp, fsync, rename | clean | LOST_ACK | LOST_ACK | LOST_ACK
write temp, fsync, rename, fsync directory | clean | clean | clean | clean
SQLite rollback journal, synchronous FULL (Python default) | clean | LOST_ACK | LOST_ACK | LOST_ACK
SQLite rollback journal, synchronous EXTRA | clean | clean | clean | clean
SQLite WAL, FULL | clean | clean | clean | clean
SQLite WAL, NORMAL | clean | LOST_ACK | LOST_ACK | LOST_ACK
SQLite synchronous OFF | clean | CORRUPT | CORRUPT | CORRUPT
LMDB, over a value that is there | clean | clean | clean | clean
"""


def test_this_is_required_and_where_no_corruption_is_required_it_is_not_allowed() -> None:
    required = {row.title: [row.required[model] for model in MODELS] for row in ROWS}

    for line in THE_TABLE.strip().splitlines():
        title, *cells = line.split(" | ")
        assert [str(cell) for cell in required[title]] == cells
        assert [cell.may == frozenset() or FaultKind.CORRUPT in cell.must for cell in required[title]] == [True] * 4


def test_what_deviates_is_told_and_in_which_direction() -> None:
    lost_only = Required(frozenset({FaultKind.LOST_ACK}))
    corrupt = Required(frozenset({FaultKind.CORRUPT}), frozenset({FaultKind.LOST_ACK}))

    assert lost_only.deviation(frozenset({FaultKind.LOST_ACK})) == ""
    assert corrupt.deviation(frozenset({FaultKind.CORRUPT, FaultKind.LOST_ACK})) == ""
    assert corrupt.deviation(frozenset({FaultKind.LOST_ACK})) == "CORRUPT not found: the explorer is too weak"
    assert Required().deviation(frozenset({FaultKind.MIXED})) == (
        "MIXED found, and cannot be: the model allows what no disk does"
    )
