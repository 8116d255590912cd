"""The table of the calibration comes out exactly, whatever the seed: no false alarm in a clean row, no fault missed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from n00dles_testing.powerloss.calibration import ROWS, Required, calibrate_number
from n00dles_testing.powerloss.faults_found import FaultKind
from n00dles_testing.powerloss.models import MODELS
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
