"""Reports of `powerloss` and `faults` on the page: as the clauses that they try, and nothing more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from n00dles_testing.cli import main
from n00dles_testing.report.check_report import CheckReport, UnreadableReportError, parse_check_report
from n00dles_testing.tracing import why_not
from n00dles_testing.verdicts import Verdict
from tests.n00dles_testing.report.reports import failed, passed, power_loss, powerloss, report
from tests.n00dles_testing.report.test_html_page import page

MUTANTS = "n00dles_testing.conformance.mutants"
traced = pytest.mark.skipif(why_not() is not None, reason=f"nothing can be traced here: {why_not()}")


def verdicts(form: dict[str, Any]) -> dict[str, Verdict]:
    return {each.clause: each.verdict for each in parse_check_report(form).results}


def faults(**changes: Any) -> dict[str, Any]:
    form = {key: value for key, value in report().items() if key not in ("results", "grade", "level")}
    return {
        **form,
        "kind": "faults",
        "conclusion": "no fault found",
        "deeds": [],
        "clauses": [passed("C03")],
        **changes,
    }


def test_what_is_found_under_several_models_is_told_once_with_its_picture() -> None:
    read = parse_check_report(powerloss())

    p01 = read.results[0]
    assert (p01.clause, p01.verdict, p01.scenarios) == ("P01", Verdict.FAIL, 120)
    [finding] = p01.findings
    assert finding.message == "CORRUPT after a power loss (ext4): it does not open"
    found = "found    in these disk states that were tried: 3 of the 40 under ext4, 5 of the 40 under journaled"
    assert found in finding.story
    assert "call 2: delete('r') → the power fails before it returns" in finding.story
    assert finding.picture is not None
    assert (finding.picture.model, len(finding.picture.finding.timeline)) == ("ext4", 8)


@pytest.mark.parametrize("kind", ["LOST_ACK", "LOST_IN_RECOVERY"])
def test_a_lost_acknowledgement_is_of_the_other_clause(kind: str) -> None:
    form = powerloss({"ext4": [power_loss(kind=kind)]})

    assert verdicts(form) == {"P01": Verdict.PASS, "P02": Verdict.FAIL, "P03": Verdict.NOT_RUN}


def test_what_only_the_strict_model_finds_breaks_nothing_and_is_told() -> None:
    read = parse_check_report(powerloss({"strict": [power_loss()]}, ok=True))

    assert [each.verdict for each in read.results] == [Verdict.PASS, Verdict.PASS, Verdict.NOT_RUN]
    assert "strict, a grade above what is required: CORRUPT in 3 of 40 states" in read.notes
    assert read.ok


def test_what_the_command_did_not_take_for_well_is_not_ok_on_the_page() -> None:
    assert not parse_check_report(powerloss({"strict": [power_loss()]}, ok=False)).ok


def test_what_there_was_no_time_for_or_could_not_be_followed_is_unknown() -> None:
    no_time, unfollowed = powerloss({}), powerloss({})
    no_time["models"][1]["missed"] = 7
    unfollowed["models"][2]["unfollowed"] = "io_uring was used"

    assert verdicts(no_time) == {"P01": Verdict.UNKNOWN, "P02": Verdict.UNKNOWN, "P03": Verdict.NOT_RUN}
    assert verdicts(unfollowed) == {"P01": Verdict.UNKNOWN, "P02": Verdict.UNKNOWN, "P03": Verdict.NOT_RUN}


def test_where_a_store_hung_in_a_second_power_loss_it_is_told_why_the_rest_is_not_known() -> None:
    hung = powerloss({"journaled": [power_loss(kind="RECOVERY")]})
    hung["models"][2] |= {"missed": 7, "hung": 3}

    p01, p02, _ = parse_check_report(hung).results

    assert (p01.verdict, p02.verdict) == (Verdict.FAIL, Verdict.UNKNOWN)
    assert p02.reason.startswith("the store hung in 3 states, so the others were not tried (journaled); ")


def test_without_a_model_that_is_required_nothing_passes() -> None:
    form = powerloss({})
    form["models"] = [model for model in form["models"] if model["model"] in ("ext4", "strict")]

    assert verdicts(form) == {"P01": Verdict.UNKNOWN, "P02": Verdict.UNKNOWN, "P03": Verdict.NOT_RUN}


def test_what_could_not_be_tried_is_not_run_for_its_reason() -> None:
    read = parse_check_report(powerloss(models=[], reason="system calls cannot be traced: no"))

    assert {(each.verdict, each.reason) for each in read.results} == {
        (Verdict.NOT_RUN, "system calls cannot be traced: no")
    }


def test_each_sync_that_failed_is_a_scenario() -> None:
    model = {
        "model": "journaled",
        "tried": 7,
        "at_least": None,
        "findings": [power_loss(invoked=["1"], acknowledged=[])],
    }
    bad = {"sync": "fsync of a, during save('s')", "told": ["OSError: [Errno 5]"], "models": [model]}
    good = {**bad, "models": [{**model, "findings": []}]}

    read = parse_check_report(powerloss({}, failed_syncs=[good, bad]))

    p03 = read.results[2]
    assert (p03.verdict, p03.scenarios) == (Verdict.FAIL, 2)
    assert p03.findings[0].story[:2] == (
        "scenario fsync of a, during save('s'), fails with EIO",
        "call 1: save('s') with {} → OSError: [Errno 5]",
    )
    assert verdicts(powerloss({}, failed_syncs=[good]))["P03"] is Verdict.PASS


def test_faults_are_the_clauses_that_it_tries() -> None:
    read = parse_check_report(faults(clauses=[passed("C03"), failed("C04")]))

    assert [(each.clause, each.verdict) for each in read.results] == [("C03", Verdict.PASS), ("C04", Verdict.FAIL)]
    assert read.level is None


def test_all_kinds_stand_side_by_side_on_one_page() -> None:
    tree = page(report("a:First"), powerloss(target="a:Second"), faults(target="a:Third"))

    assert "First" in tree.words
    assert "Second breaks P01" in tree.words
    assert "Third" in tree.words


@pytest.mark.parametrize(
    ("form", "complaint"),
    [
        (powerloss(models="all"), "is a damaged report: models: "),
        (powerloss({"ext4": [{"kind": "CORRUPT"}]}), "is a damaged report: models.1.findings.0.message: "),
        (faults(clauses=[]), "is an empty report"),
        (faults(clauses=[{"clause": "C03"}]), "is a damaged report: results.0.title: "),
    ],
)
def test_a_damaged_one_is_told(form: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UnreadableReportError) as told:
        parse_check_report(form)

    assert str(told.value).startswith(complaint)


@traced
def test_powerloss_writes_a_page_with_a_picture_and_report_writes_the_same_of_its_json(tmp_path: Path) -> None:
    form, own, again = tmp_path / "form.json", tmp_path / "own.html", tmp_path / "again.html"
    target = f"{MUTANTS}.p02:ForgetsTheFolder"
    words = ["powerloss", target, "--model", "ext4", "--budget", "30", "--json", str(form), "--html", str(own)]

    done = CliRunner().invoke(main, words)
    merged = CliRunner().invoke(main, ["report", str(form), "--html", str(again)])

    assert (done.exit_code, merged.exit_code) == (1, 0), done.output + merged.output
    assert f"report written to {own}" in done.output
    assert "LOST" in own.read_text()
    assert 'role="img"' in own.read_text()
    assert len(own.read_text()) == len(again.read_text())
    timeline = json.loads(form.read_text())["models"][0]["findings"][0]["timeline"]
    assert [each["what"] for each in timeline][-2:] == ["rename", "return"]


def test_faults_writes_a_page_too(tmp_path: Path) -> None:
    file = tmp_path / "faults.html"

    done = CliRunner().invoke(main, ["faults", "memory://", "--how", "kill", "--budget", "1", "--html", str(file)])

    assert f"report written to {file}" in done.output
    assert "C03" in file.read_text()


def test_two_reports_do_not_go_into_one_file(tmp_path: Path) -> None:
    for command in ("powerloss", "faults"):
        same = ["--json", str(tmp_path / "f"), "--html", str(tmp_path / "f")]

        done = CliRunner().invoke(main, [command, "memory://", *same])

        assert done.exit_code == 2
        assert "both name" in done.output


def test_a_report_that_is_read_says_what_it_is(tmp_path: Path) -> None:
    read = parse_check_report(powerloss())

    assert isinstance(read, CheckReport)
    assert read.grade.endswith("only P01, P02 and P03 were tried; a level takes a whole check")
