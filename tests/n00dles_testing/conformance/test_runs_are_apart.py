"""S06: what a store may do with an id that it has no room for, and how a mixed-up run is told."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.clauses import s06_apart
from n00dles_testing.conformance.draw import Draw
from n00dles_testing.conformance.expect import BrokenClause
from n00dles_testing.conformance.ids import LENGTHS, IdGroup, groups_of_ids, ids_of_lengths, paths
from n00dles_testing.conformance.surroundings import Surroundings
from n00dles_testing.verdicts import ClauseResult, Verdict

from .test_what_counts import subject_in

HOSTILE = Path(__file__).parent / "hostile_stores.py"
REFUSING = Path(__file__).parent / "refusing_stores.py"
MUTANTS = "n00dles_testing.conformance.mutants.s06"


def s06_of(target: str) -> ClauseResult:
    [result] = check_store(target, clauses=["S06"]).results
    return result


def test_an_id_may_be_refused_and_the_report_says_so() -> None:
    result = s06_of(f"{HOSTILE}:RefusesSlashes")

    assert result.verdict is Verdict.PASS
    assert "refuses 1 of 12 ids that differ by a separator (ValueError)" in result.reason


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ("TripsOverSlashes", "raised KeyError: 'a/b'"),
        ("SaysNothing", "raised ValueError"),
        ("RefusesEachSecondTime", "is refused again is False, not True"),
        ("RefusesAtTheSave", "save raised ValueError: a run id has no slash"),
    ],
)
def test_a_refusal_that_is_unclear_late_or_does_not_last_is_a_fault(store: str, message: str) -> None:
    result = s06_of(f"{HOSTILE}:{store}")

    assert result.verdict is Verdict.FAIL
    assert message in result.findings[0].message


@pytest.mark.parametrize(
    ("mutant", "scenario", "message"),
    [
        ("UsesIdsAsPaths", "scenario ids that are paths", "what the store has touched outside its location is "),
        ("CleansFileNames", "scenario ids that differ by white space", "inputs['number'] is 'run "),
        ("IgnoresCase", "scenario ids that differ by case", "inputs['number'] is 'run 0', not 'run 1'"),
        ("IgnoresCaseWhenItReads", "scenario ids that differ by case", "completed['researcher'] is missing"),
        ("NormalizesIds", "scenario ids that differ by Unicode form", "inputs['number'] is 'run 0', not 'run 1'"),
        ("CutsLongIds", "scenario ids that differ by length, or in the last character", "inputs['number'] is "),
        (
            "DeletesWhatIsLike",
            "scenario ids that differ by SQL and shell wildcards",
            "completed['researcher'] is missing",
        ),
    ],
)
def test_a_run_that_is_mixed_up_is_told_with_the_ids(mutant: str, scenario: str, message: str) -> None:
    finding = s06_of(f"{MUTANTS}:{mutant}").findings[0]

    assert finding.story[0] == scenario
    assert finding.message.startswith(message)


def test_two_ids_that_have_one_place_in_a_file_are_found_when_it_is_opened_again(tmp_path: Path) -> None:
    subject = subject_in(tmp_path, f"{MUTANTS}:IgnoresCaseWhenItReads")
    base = subject.fresh_run_id()
    ids = tuple(f"{base}-{end}" for end in ("first", "second", "Second"))

    asyncio.run(s06_apart._a_group(subject, IdGroup("case", ids)))

    [finding] = subject.findings
    assert finding.message.startswith("completed['researcher'] is missing")
    assert "the store was opened again, and kept runs with plain ids such as 'run-test-" in finding.story[-1]


def test_no_run_id_makes_a_story_unreadable() -> None:
    finding = s06_of(f"{MUTANTS}:CutsLongIds").findings[0]

    assert max(len(line) for line in finding.story) < 1_000


def test_every_group_has_ids_that_are_all_different_and_no_path_leads_beyond_the_suite() -> None:
    base = "run-x-1234"

    groups = [*groups_of_ids(base), paths(base, "/outside"), ids_of_lengths(base, Draw("S06:0"))]

    assert all(len(set(group.ids)) == len(group.ids) >= 3 for group in groups)
    assert sorted({len(id_.encode()) for id_ in groups[-1].ids}) == list(LENGTHS)
    absolute = [id_ for group in groups for id_ in group.ids if id_.startswith("/")]
    assert absolute == ["/outside/run-x-1234"]
    assert max(id_.count("..") for group in groups for id_ in group.ids) == 2


def test_whatever_is_touched_around_a_location_is_seen(tmp_path: Path) -> None:
    subject = subject_in(tmp_path / "a" / "b")
    scenario = subject.scenario("x")
    assert scenario.location is not None
    beside = Path(scenario.location).parent / "beside"
    around = Surroundings(scenario)

    def touched_by(act: Any) -> str:
        act()
        with pytest.raises(BrokenClause) as caught:
            around.expect_untouched(because="nothing may be")
        return caught.value.message

    Path(scenario.location, "inside").write_text("x")
    around.expect_untouched(because="it is the store's own")
    assert touched_by(lambda: beside.write_text("x")) == (
        "what the store has touched outside its location is ['../beside'], not []"
    )
    assert "['../beside']" in touched_by(lambda: beside.write_text("more"))
    assert "['../beside']" in touched_by(beside.unlink)
    assert "['../../folder']" in touched_by((tmp_path / "a" / "folder").mkdir)


def test_a_store_that_takes_no_location_is_not_asked_for_paths() -> None:
    result = s06_of("memory://")

    assert result.verdict is Verdict.PASS
    assert result.reason == "ids that are paths, or short, were not tried: the store takes no location"


def test_names_of_nodes_may_be_refused_and_no_clause_takes_that_for_a_fault() -> None:
    report = check_store(f"{REFUSING}:RefusesOddNames", clauses=["S02", "S03", "S04", "S06", "S17"])

    assert {result.clause: result.verdict for result in report.results} == dict.fromkeys(
        ("S02", "S03", "S04", "S06", "S17"), Verdict.PASS
    )
    reasons = {result.clause: result.reason for result in report.results}
    assert "names of nodes that differ by a separator (SerializationError)" in reasons["S06"]


def test_a_refusal_that_does_not_name_the_node_is_a_fault() -> None:
    result = s06_of(f"{REFUSING}:RefusesOddNamesWithoutAWord")

    assert result.verdict is Verdict.FAIL
    assert "of a node raised ValueError: 400 Bad Request" in result.findings[0].message


@pytest.mark.parametrize(
    ("mutant", "scenario"),
    [
        ("NormalizesNames", "scenario names of nodes that differ by white space"),
        ("CutsLongNames", "scenario names of nodes that differ by their last character, of up to 1000"),
        ("NamesFilesLikeNodes", "scenario names of nodes that are paths"),
        ("JoinsIdAndName", "scenario run `a` with node `b:c`, beside run `a:b`"),
    ],
)
def test_nodes_that_are_mixed_up_are_told_by_what_their_names_differ_in(mutant: str, scenario: str) -> None:
    assert s06_of(f"{MUTANTS}:{mutant}").findings[0].story[0] == scenario
