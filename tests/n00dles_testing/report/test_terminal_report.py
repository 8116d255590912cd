"""What a person sees: tables, stories, progress; and that nothing from outside is ever interpreted."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from n00dles_testing.report.escape import escaped, one_line
from n00dles_testing.report.rows import ReportRow
from n00dles_testing.report.terminal import (
    StepDisplay,
    clause_line,
    clause_table,
    console_for,
    exploration_line,
    exploration_table,
    print_findings,
    print_notes,
    print_table,
)
from n00dles_testing.verdicts import ClauseResult, Finding, Verdict

HOSTILE = "[bold]run[/bold] \x1b[31m:smile: \u202e\x07"
HOSTILE_SHOWN = r"[bold]run[/bold] \x1b[31m:smile: \u202e\x07"


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")  # xdist sets it to 80
    monkeypatch.delenv("NO_COLOR", raising=False)


def log() -> Console:
    return console_for(io.StringIO())


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, markup=False, emoji=False, highlight=False, width=100)


def text_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def result(verdict: Verdict = Verdict.PASS, **changes: object) -> ClauseResult:
    return ClauseResult(**{"clause": "S05", "title": "no aliasing", "verdict": verdict, "scenarios": 3, **changes})  # type: ignore[arg-type]


def row(**changes: object) -> ReportRow:
    fields = {
        "point": "after writer, not saved",
        "killed_by": "SIGKILL",
        "on_disk": ("researcher",),
        "paid_calls": 4,
        "re_calls": 0,
        "same_output": True,
        "verdict": Verdict.PASS,
    }
    return ReportRow(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, café, 猫", "plain text, café, 猫"),
        ("\x1b[2J", r"\x1b[2J"),
        ("a\tb\rc", r"a\tb\rc"),
        ("\u202eevil\u200b", r"\u202eevil\u200b"),
        ("\ud800", r"\ud800"),
        ("two\nlines", "two\nlines"),
    ],
)
def test_characters_that_a_terminal_obeys_are_escaped(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_one_line_stays_one_line() -> None:
    assert one_line("two\nlines") == r"two\nlines"


def test_text_from_a_store_is_shown_and_not_interpreted() -> None:
    console = terminal()

    console.print(clause_table([result(clause=HOSTILE, title=HOSTILE, reason=HOSTILE)]))
    console.print(clause_line(result(clause=HOSTILE, title=HOSTILE)))
    console.print(exploration_table([row(point=HOSTILE, killed_by=HOSTILE, on_disk=(HOSTILE,))]))
    console.print(exploration_line(row(point=HOSTILE)))
    print_findings(console, [Finding(HOSTILE, HOSTILE, (HOSTILE,), HOSTILE)])
    print_notes(console, [HOSTILE])

    shown = text_of(console)
    assert "\x1b[31m:smile:" not in shown
    assert "\u202e" not in shown
    assert "\x07" not in shown
    assert shown.count("[bold]") >= 10


def test_a_clause_table_says_verdict_reason_scenarios_and_seconds() -> None:
    console = log()

    console.print(clause_table([result(seconds=1.239), result(Verdict.FAIL, clause="S01", reason="it is 1, not 2")]))

    lines = [" ".join(line.split()) for line in text_of(console).splitlines()]
    assert "S05 PASS no aliasing 3 1.24" in lines
    assert "S01 FAIL no aliasing 3 -" in lines
    assert "it is 1, not 2" in lines


def test_an_exploration_table_has_a_row_for_each_crash_point() -> None:
    console = log()

    rows = [row(), row(point="run started", on_disk=None), row(on_disk=(), same_output=False, re_calls=1, killed_by="")]
    console.print(exploration_table(rows))

    lines = [" ".join(line.split()) for line in text_of(console).splitlines()]
    assert "crash point killed by on disk paid calls re-called same output verdict" in lines
    assert "after writer, not saved SIGKILL researcher 4 0 yes PASS" in lines
    assert "run started SIGKILL no record 4 0 yes PASS" in lines
    assert "after writer, not saved - no outputs 4 1 NO PASS" in lines


def test_a_story_is_printed_line_by_line_with_its_replay_in_one_piece() -> None:
    console = log()
    replay = "n00dles-testing check x:y " + "--clause S05 " * 20

    print_findings(console, [Finding("S05", "it is 'a', not 'b'", ("open", "save('r') with " + "x" * 300), replay)])

    assert text_of(console).splitlines() == [
        "",
        "S05  it is 'a', not 'b'",
        "  open",
        "  save('r') with " + "x" * 300,
        f"  replay   {replay}",
    ]


def test_a_story_is_broken_with_a_hanging_indent_on_a_terminal() -> None:
    console = terminal()

    print_findings(console, [Finding("S05", "m", ("load " + "word " * 40,))])

    lines = text_of(console).splitlines()[2:]
    assert lines[0].startswith("  load word")
    assert all(line.startswith("      word") for line in lines[1:])
    assert all(len(line) <= 100 for line in lines)


def test_a_log_gets_one_line_a_step_and_no_control_sequence() -> None:
    console = log()

    with StepDisplay(console, "clauses") as display:
        display.start(2)
        display.at("S05 1: something")
        display.done(clause_line(result()))
        display.done(clause_line(result(Verdict.FAIL)), important=True)

    assert "\x1b" not in text_of(console)
    assert text_of(console).splitlines() == [
        "S05  PASS            3 scenarios  no aliasing",
        "S05  FAIL            3 scenarios  no aliasing",
    ]


def test_a_dumb_terminal_is_written_to_like_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    console = terminal()

    with StepDisplay(console, "clauses") as display:
        display.start(1)
        display.done(clause_line(result()))

    assert text_of(console).count("\n") == 1
    assert "\x1b[2K" not in text_of(console)


def test_a_terminal_shows_how_far_it_is_and_keeps_only_what_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    console = terminal()

    with StepDisplay(console, "clauses") as display:
        display.start(2)
        display.at("S05 1: [bold]a scenario")
        display.done(clause_line(result()))
        display.done(clause_line(result(Verdict.FAIL)), important=True)

    shown = text_of(console)
    assert "S05 1: [bold]a scen" in shown
    assert "2/2 clauses" in shown
    assert "/? " not in shown
    assert "left" not in shown.rpartition("2/2 clauses")[2]
    assert "FAIL" in shown
    assert "PASS" not in shown


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    console = terminal()

    console.print(clause_line(result(Verdict.FAIL)))

    assert "\x1b[31m" not in text_of(console)
    assert "\x1b[1;31m" not in text_of(console)


@pytest.mark.parametrize("columns", ["0", "1", "20", "99999999"])
def test_whatever_columns_says_verdict_and_clause_are_told(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    stream = io.StringIO()
    row = ClauseResult("S05", "what the caller mutates is not what is stored", Verdict.FAIL, "spoiled", 7, 0.11)

    print_table(console_for(stream), clause_table([row]))

    assert any("S05" in line and "FAIL" in line for line in stream.getvalue().splitlines())
    assert max(map(len, stream.getvalue().splitlines())) <= 1000
