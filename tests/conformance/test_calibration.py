"""The command that prints the calibration of the power-loss explorer, and the table that is kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.calibration import __main__ as command
from n00dles_testing.powerloss.calibration import ROWS, Calibrated, Cell
from n00dles_testing.powerloss.faults_found import FaultKind
from n00dles_testing.powerloss.models import MODELS
from n00dles_testing.tracing import why_not

HOW = "run `make calibration`, and commit conformance/results/calibration.md"


def made_up(number: int, deviations: tuple[str, ...] = ()) -> Calibrated:
    cells = tuple(
        Cell(model, ROWS[number].required[model].must, tried=10, at_least=None, seconds=0.1) for model in MODELS
    )
    return Calibrated(ROWS[number].title, cells, operations=12, seconds=0.5, deviations=deviations)


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Every row comes out as required, at once."""
    monkeypatch.setattr(command, "_in_processes", lambda rows, jobs, *, seed: map(made_up, range(len(ROWS))))
    monkeypatch.setattr(command, "_those_that_can_be", lambda rows: (list(rows), []))
    monkeypatch.setattr(command, "why_not", lambda: None)
    return tmp_path / "results"


def test_two_rows_are_calibrated_for_real(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if reason := why_not():
        pytest.skip(reason)

    code = command.main(["temp, fsync", "--jobs", "1", "--results", str(tmp_path)])

    said = capsys.readouterr().out
    assert code == 0
    assert "ok        write temp, fsync, rename: kill clean, ext4 LOST_ACK, journaled LOST_ACK, strict LOST_ACK" in said
    assert "ok        write temp, fsync, rename, fsync directory: kill clean, ext4 clean, journaled clean" in said
    assert "the rename of `value.json.tmp` to `value.json` in call `1` did not reach the disk" in said
    assert list(tmp_path.iterdir()) == []


def test_the_whole_table_is_written(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = command.main(["--results", str(results), "--seed", "7"])

    text = (results / "calibration.md").read_text()
    assert code == 0
    assert "calibration: as required" in capsys.readouterr().out
    assert "with seed 7" in text
    assert "Nothing deviates from what is required." in text
    assert "| SQLite WAL, NORMAL | clean | LOST_ACK | LOST_ACK | LOST_ACK |" in text


def test_a_deviation_is_told_and_ends_with_1(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def rows(*given: object, **options: object) -> Iterator[Calibrated]:
        yield made_up(0, ("overwrite in place, no sync: ext4: CORRUPT not found",))
        yield from map(made_up, range(1, len(ROWS)))

    monkeypatch.setattr(command, "_in_processes", rows)

    code = command.main(["--results", str(results)])

    assert code == 1
    assert "DEVIATES  overwrite in place, no sync: ext4: CORRUPT not found" in capsys.readouterr().out
    assert "**Deviates**: overwrite in place, no sync: ext4" in (results / "calibration.md").read_text()


def test_where_nothing_can_be_traced_nothing_is_calibrated(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "why_not", lambda: "ptrace is not permitted here")

    code = command.main(["--results", str(results)])

    assert code == 1
    assert "NOT RUN  ptrace is not permitted here" in capsys.readouterr().out
    assert not results.exists()


def test_a_row_whose_database_is_missing_is_not_run_and_keeps_the_old_table(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "_those_that_can_be", lambda rows: (list(rows)[:-1], ["DuckDB: not installed"]))

    code = command.main(["--results", str(results)])

    assert code == 0
    assert "NOT RUN  DuckDB: not installed" in capsys.readouterr().out
    assert not results.exists()


def test_an_unknown_row_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["no such row"]) == 2
    assert "no row is called no such row" in capsys.readouterr().err


def test_the_table_that_is_kept_has_every_row_and_no_deviation() -> None:
    text = (command.RESULTS / command.NAME).read_text()

    found = {row.title: line_of(text, row.title) for row in ROWS}

    assert "Nothing deviates from what is required." in text, HOW
    for row in ROWS:
        cells = [
            frozenset(FaultKind(kind) for kind in cell.split(", ") if kind != "clean") for cell in found[row.title]
        ]
        assert [row.required[model].deviation(cell) for model, cell in zip(MODELS, cells, strict=True)] == [""] * 4, HOW


def line_of(text: str, title: str) -> list[str]:
    line = next((line for line in text.splitlines() if line.startswith(f"| {title} | ")), None)
    assert line is not None, HOW
    return line.strip("| ").split(" | ")[1:]


def test_ctrl_c_ends_it_in_good_order(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*given: object, **options: object) -> Iterator[Calibrated]:
        yield made_up(0)
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "_in_processes", interrupted)

    code = command.main(["--results", str(results)])

    assert code == 130
    assert capsys.readouterr().err == "interrupted\n"
    assert not results.exists()
