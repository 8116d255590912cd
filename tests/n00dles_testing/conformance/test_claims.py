"""What a store claims, and its known gaps: from an attribute or a file, refused if it means nothing, and judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from n00dles.errors import ConfigurationError
from n00dles_testing.conformance import Claims, GapState, StoreReport, check_store
from n00dles_testing.verdicts import Verdict

ALIASING = "n00dles_testing.conformance.mutants.s05:GivesOutItsCache"


def written(folder: Path, text: str) -> Path:
    path = folder / "claims.toml"
    path.write_text(text)
    return path


def check(folder: Path, text: str, clauses: tuple[str, ...] = ("S01", "S05"), target: str = ALIASING) -> StoreReport:
    return check_store(target, clauses=clauses, claims=written(folder, text))


def test_claims_are_read_from_a_file(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        'reader = "shop.reading:read"\n'
        '[claims]\nlevel = 2\ncapabilities = ["durable", "load"]\n'
        '[known-gaps]\ns08 = " keeps no revision "\n',
    )

    claims = Claims.from_file(path)

    assert claims == Claims(2, ("durable", "load"), {"S08": "keeps no revision"}, "shop.reading:read", source=str(path))


def test_an_attribute_claims_as_a_file_does_and_the_file_wins_where_both_say_something() -> None:
    said = Claims.from_attribute({"level": 1, "capabilities": ["load"]}, "Store")
    file = Claims(level=2, source="claims.toml")

    both = file.over(said)

    assert (both.level, both.capabilities) == (2, ("load",))
    assert both.source == "claims.toml and the attribute claims of Store"


@pytest.mark.parametrize("other", [None, "sub", {"sub": "somebody"}, lambda: {"level": 2}, ["level"]])
def test_an_attribute_of_that_name_that_means_something_else_claims_nothing(other: object) -> None:
    assert Claims.from_attribute(other, "Store") == Claims()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[claims", "are no TOML: "),
        ("[claims]\nlevel = 5", "the level 5 is none; there are 1 (contract), 2 (crash-safe)"),
        ('[claims]\nlevel = "2"', "the level is the text '2'; write a number, without quotes: 2"),
        ("[claims]\nlevel = true", "the level True is none"),
        ('[claims]\ncapabilities = "load"', "capabilities is 'load'; write a list of durable, shared"),
        (
            '[claims]\ncapabilities = ["laod"]',
            "'laod' means nothing; known are durable, shared, load, list_runs, prune",
        ),
        ('[claims]\ncapabilities = ["laod"]', "Did you mean load?"),
        ("[claim]\nlevel = 2", "'claim' means nothing; known are reader, claims, known-gaps. Did you mean claims?"),
        ("claims = 2", "claims is 2; write it as a table, under a line [claims]"),
        ("reader = 2", "reader is 2; write module:function, as text"),
        ('[known-gaps]\nS99 = "x"', "[known-gaps] names 'S99', which is no clause of a store (S01 … W09)"),
        ('[known-gaps]\nreader = "m:f"', "It belongs above the first [table] of the file."),
        ('[known-gaps]\nS08 = " "', "the known gap S08 has no reason; write one, as text"),
        ("[known-gaps]\nS08 = 3", "the known gap S08 has no reason"),
    ],
)
def test_claims_that_mean_nothing_are_refused_before_the_check(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check(tmp_path, text)

    assert message in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_all_that_is_wrong_in_a_file_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check(tmp_path, '[claims]\nlevel = "2"\ncapabilities = ["lod"]\n[known-gaps]\nS99 = "x"')

    level, capability, gap = str(caught.value).splitlines()
    assert "write a number, without quotes" in level
    assert "Did you mean load?" in capability
    assert "names 'S99'" in gap


def test_a_known_gap_is_told_and_fails_nothing(tmp_path: Path) -> None:
    report = check(tmp_path, '[known-gaps]\nS05 = "hands out its cache, for speed"')

    assert [result.verdict for result in report.results] == [Verdict.PASS, Verdict.FAIL]
    assert [(gap.clause, gap.state, gap.text) for gap in report.gaps] == [
        ("S05", GapState.KNOWN, "S05 FAIL (known gap: hands out its cache, for speed)")
    ]
    assert report.ok
    assert report.grade.level is None
    assert report.grade.text.startswith("no level: the store breaks S05\n")


def test_a_known_gap_that_passes_fails_the_run(tmp_path: Path) -> None:
    report = check(tmp_path, '[known-gaps]\nS05 = "hands out its cache"\nS01 = "it was once so"')

    assert report.problems == (
        f"S01 is declared as a known gap (it was once so), and passed: remove it from {tmp_path / 'claims.toml'}",
    )
    assert not report.ok


def test_a_gap_does_not_excuse_what_shows_nothing(tmp_path: Path) -> None:
    report = check(tmp_path, '[known-gaps]\nC01 = "in memory"\nW01 = "one worker"', ("S01", "C01"), "memory://")

    assert [(gap.clause, gap.state, gap.ok) for gap in report.gaps] == [
        ("C01", GapState.UNSETTLED, True),
        ("W01", GapState.NOT_CHECKED, True),
    ]
    assert report.gaps[0].text.endswith("and is NOT APPLICABLE: nothing is known about it")


def test_the_replay_line_repeats_what_was_said(tmp_path: Path) -> None:
    report = check(tmp_path, "[claims]\nlevel = 1")

    assert report.results[1].findings[0].replay == (
        f"n00dles-testing check {ALIASING} --clause S05 --seed 0 --claims {tmp_path / 'claims.toml'}"
    )


def test_the_report_for_programs_has_claims_gaps_and_problems(tmp_path: Path) -> None:
    form = check(tmp_path, '[claims]\nlevel = 1\n[known-gaps]\nS01 = "once"').to_dict()

    assert form["claims"] == {
        "level": 1,
        "capabilities": [],
        "source": str(tmp_path / "claims.toml"),
        "level_kept": None,
    }
    assert [(gap["clause"], gap["state"], gap["ok"]) for gap in form["gaps"]] == [("S01", "unexpected pass", False)]
    assert form["problems"] == ["S05 FAIL", form["gaps"][0]["text"]]
