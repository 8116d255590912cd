"""S15: what piles up, what only looks so, and transactions that are open between two calls."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.idle_sqlite import open_transactions
from n00dles_testing.verdicts import ClauseResult, Verdict

STORES = Path(__file__).parent / "quiet_stores.py"
MUTANTS = "n00dles_testing.conformance.mutants"


def checked(target: str) -> ClauseResult:
    [result] = check_store(target, clauses=["S15"]).results
    return result


@pytest.mark.parametrize("store", ["EndsAMomentLater", "MarksWhatIsDeleted"])
def test_what_ends_a_moment_later_or_stays_once_is_no_leak(store: str) -> None:
    result = checked(f"{STORES}:{store}")

    assert (result.verdict, result.scenarios) == (Verdict.PASS, 2)
    assert "was not tried" not in result.reason


def test_a_slow_store_gets_fewer_cycles_and_the_report_says_how_many() -> None:
    result = checked(f"{STORES}:TakesItsTime")

    cycles = int(result.reason.partition(" ")[0])
    assert result.verdict is Verdict.PASS
    assert 20 <= cycles < 200
    assert result.reason.startswith(f"{cycles} cycles of open, use and close, not 200")


def test_a_store_for_one_process_is_not_blamed_for_a_transaction() -> None:
    result = checked(f"{STORES}:IsForOneProcess")

    assert result.verdict is Verdict.PASS
    assert result.reason.endswith(
        "idle between calls was not tried: while one process has the store open, a second one cannot open it"
    )


def test_a_memory_store_has_nothing_to_hold_between_calls() -> None:
    result = checked("memory://")

    assert (result.verdict, result.scenarios) == (Verdict.PASS, 1)


def test_files_left_where_temporary_files_go_are_found() -> None:
    result = checked(f"{STORES}:LeavesTemporaryFiles")

    assert result.verdict is Verdict.FAIL
    assert result.findings[0].message.startswith("files are left: 1 before, ")
    assert "for example temporary-" in "\n".join(result.findings[0].story)


def test_a_transaction_that_is_committed_at_the_close_keeps_a_second_process_waiting() -> None:
    result = checked(f"{MUTANTS}.c02:CommitsAtClose")

    assert result.verdict is Verdict.FAIL
    assert result.findings[0].message == (
        "while another process is idle after a creation: load_or_create in another process raised "
        "OperationalError: database is locked"
    )


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "runs.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE runs (run_id TEXT)")
        yield connection


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_a_file_that_nobody_uses_at_the_moment_has_no_open_transaction(
    mode: str, connection: sqlite3.Connection, tmp_path: Path
) -> None:
    connection.execute(f"PRAGMA journal_mode = {mode}")
    connection.execute("INSERT INTO runs VALUES ('a')")

    assert open_transactions(str(tmp_path)) == []


@pytest.mark.parametrize(
    ("mode", "statement", "found"),
    [
        ("DELETE", "SELECT * FROM runs", "one that holds a lock on runs.db (database is locked)"),
        ("DELETE", "INSERT INTO runs VALUES ('b')", "one that holds a lock on runs.db (database is locked)"),
        ("WAL", "INSERT INTO runs VALUES ('b')", "one that holds a lock on runs.db (database is locked)"),
        (
            "WAL",
            "SELECT * FROM runs",
            "one that reads runs.db, so that its write-ahead log cannot be emptied and grows",
        ),
    ],
)
def test_an_open_transaction_is_seen_from_the_outside(
    mode: str, statement: str, found: str, connection: sqlite3.Connection, tmp_path: Path
) -> None:
    connection.execute(f"PRAGMA journal_mode = {mode}")
    connection.execute("INSERT INTO runs VALUES ('a')")
    connection.execute("BEGIN")
    connection.execute(statement)

    assert open_transactions(str(tmp_path)) == [found]


def test_what_is_no_database_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "runs.json").write_text("{}")
    (tmp_path / "damaged.db").write_bytes(b"SQLite format 3\0" + b"?" * 500)

    assert open_transactions(str(tmp_path)) == []
    assert open_transactions(None) == []
