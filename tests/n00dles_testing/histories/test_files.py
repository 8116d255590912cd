"""A history as a file: read as it was written, refused if damaged, and judged again by the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from n00dles_testing.cli import main
from n00dles_testing.histories import DamagedHistoryError, History, read_history, write_history
from tests.n00dles_testing.histories.hand_made import conflict, load, raced, save, unanswered


@pytest.fixture
def written(tmp_path: Path) -> Callable[[History], Path]:
    def write(history: History) -> Path:
        write_history(tmp_path / "history.jsonl", history)
        return tmp_path / "history.jsonl"

    return write


def test_a_history_is_read_as_it_was_written(written: Callable[[History], Path]) -> None:
    history = History(
        (
            *raced().calls,
            save("a", (30, 40), "\udc80", "t1", 2, outputs=("writer",)),
            unanswered("c", 50, "t9", "t1", 1),
        ),
        starts_empty=False,
        about={"store": "sqlite:///runs.db", "seed": 7},
    )

    again = read_history(written(history))

    assert again == history
    assert again.about == history.about


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: "", "line 1 is no JSON"),
        (lambda text: text[: len(text) // 2], "its end is missing"),
        (lambda text: text[: text.rindex("\n", 0, -1) + 1], "says 4 calls and holds 3"),
        (lambda text: text + "{}\n", "holds 5 whole lines"),
        (lambda text: text.replace('"version": 1', '"version": 2'), "format version 2"),
        (lambda text: text.replace("n00dles-testing-history", "n00dles-testing-report"), "is no history"),
        (lambda text: text.replace('"t1"', '"t7"'), "was changed after it was written"),
        (lambda text: "\x00" + text, "is no JSON"),
        (lambda text: "[" * 100_000, "is no JSON"),
    ],
)
def test_a_damaged_file_is_refused(
    written: Callable[[History], Path], damage: Callable[[str], str], message: str
) -> None:
    path = written(raced())
    path.write_text(damage(path.read_text()))

    with pytest.raises(DamagedHistoryError, match=message):
        read_history(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"client": 3}, "its client or its run_id is no text"),
        ({"operation": "drop"}, "its operation is 'drop'"),
        ({"returned": None}, "if and only if its outcome is known"),
        ({"returned": 0}, "it returned, or went on, before it was invoked"),
        ({"woken": 0}, "it returned, or went on, before it was invoked"),
        ({"invoked": 1.5}, "no whole numbers"),
        ({"invoked": True}, "no whole numbers"),
        ({"revision": -1}, "its revision is no revision"),
        ({"token": ["x"]}, "its token is no text"),
        ({"outputs": "abc"}, "its outputs are no list"),
        ({"created": 1}, "neither true nor false"),
    ],
)
def test_a_call_that_is_none_is_refused(
    written: Callable[[History], Path], change: dict[str, object], message: str
) -> None:
    path = written(raced())
    head, first, *rest = path.read_text().splitlines()
    by_hand = json.dumps({name: value for name, value in json.loads(head).items() if name != "sha256"})
    path.write_text("\n".join([by_hand, json.dumps(json.loads(first) | change), *rest]) + "\n")

    with pytest.raises(DamagedHistoryError, match=f"line 2 is no call.*{message}"):
        read_history(path)


def test_the_command_shows_the_calls_that_conflict(written: Callable[[History], Path], tmp_path: Path) -> None:
    path = written(raced(load("c", (3_000_000, 4_000_000))))

    result = CliRunner().invoke(main, ["history", str(path), "--json", str(tmp_path / "judged.json")])

    assert result.exit_code == 1
    assert "H5 REALTIME" in result.output
    assert "├─load: nothing saved r0─┤" in result.output
    assert "why  the load by c (nothing saved yet at revision 0) began after" in result.output
    assert "FAIL(REALTIME)  5 calls on 1 runs, 100% of the saves overlapped" in result.output
    assert f"again: n00dles-testing history {path}" in result.output
    report = json.loads((tmp_path / "judged.json").read_text())
    assert (report["kind"], report["verdict"]) == ("history", "FAIL")
    assert [call["client"] for call in report["violations"][0]["calls"]][1] == "c"


@pytest.mark.parametrize(
    ("history", "code", "shown"),
    [
        (raced(), 0, "PASS  4 calls on 1 runs"),
        (History(()), 1, "the history holds no call"),
        (raced(conflict("a", (30, 40), "t3", "t1", 1)), 1, "FAIL(SPURIOUS_CONFLICT)"),
    ],
)
def test_the_command_ends_by_the_verdict(
    written: Callable[[History], Path], history: History, code: int, shown: str
) -> None:
    result = CliRunner().invoke(main, ["history", str(written(history))])

    assert (result.exit_code, shown in result.output) == (code, True)


def test_the_command_refuses_a_damaged_file(written: Callable[[History], Path]) -> None:
    path = written(raced())
    path.write_text(path.read_text()[:-5])

    result = CliRunner().invoke(main, ["history", str(path)])

    assert result.exit_code == 2
    assert "its end is missing" in result.output
