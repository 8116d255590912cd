"""The trial of executors of others: its files are well-formed, what it finds is told, and one subject is tried."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.executors import failing, nodes
from conformance.executors.__main__ import main
from conformance.executors.failing import judged
from conformance.executors.page import page
from conformance.executors.subjects import Subject, subjects
from conformance.executors.trial import confirmed, merged
from n00dles_testing import explore

CLAUSES = [f"E{number:02}" for number in range(1, 19) if number not in (8, 9, 16)]
"""Those that an exploration tells of."""


def report(**verdicts: str) -> dict[str, Any]:
    """Return a report as `explore --json` writes it, with these verdicts; the rest does not apply."""
    finding = {"clause": "E02", "message": "`facts` was called again in life 2.", "story": ["life 1"], "replay": "r"}
    clauses = [
        {
            "clause": clause,
            "title": f"title of {clause}",
            "verdict": verdicts.get(clause, "NOT APPLICABLE"),
            "reason": "",
            "scenarios": 3 if clause in verdicts else 0,
            "findings": [finding, finding] if verdicts.get(clause) == "FAIL" else [],
        }
        for clause in CLAUSES
    ]
    rows = [{"killed_by": 9}, {"killed_by": None}]
    return {"points": 2, "rows": rows, "seconds": 1.0, "notes": ["a note"], "clauses": clauses}


def found(**more: Any) -> dict[str, Any]:
    """Return what was found of a subject."""
    head = {"title": "Loop", "about": "Loop: a loop.", "package": "loop", "version": "1.2", "confirmations": []}
    return {**head, **merged([report(E01="PASS", E02="FAIL"), report(E01="PASS", E18="PASS")]), **more}


def test_each_adapter_says_what_it_is_and_what_to_install() -> None:
    known = {subject.name: subject for subject in subjects()}

    assert set(known) >= {"burr_sqlite", "dbos_sqlite", "langgraph_sqlite", "n00dles_0_3", "plain_loop"}
    assert known["n00dles_0_3"].packages == ("get-n00dles==0.3.0",)
    assert [name for name, subject in known.items() if subject.is_apart] == ["n00dles_0_3"]
    for subject in known.values():
        names = {target.id for target in _assigned(subject.path) if isinstance(target, ast.Name)}
        assert subject.title
        assert subject.title != subject.about, f"{subject.name} has no `TITLE: …` in its docstring"
        assert "subject" in names, f"{subject.name} has no subject"


def _assigned(path: Path) -> list[ast.expr]:
    body = ast.parse(path.read_text("utf-8")).body
    return [target for each in body if isinstance(each, ast.Assign) for target in each.targets]


def test_each_confirmation_belongs_to_a_subject_and_uses_nothing_of_ours() -> None:
    named = {script for subject in subjects() for script in subject.confirmations}
    scripts = set((subjects()[0].path.parent / "confirmations").glob("*.py"))

    assert named == scripts
    for script in scripts:
        text = script.read_text("utf-8")
        assert ast.get_docstring(ast.parse(text)), f"{script.name} does not say what it shows"
        assert "n00dles_testing" not in text
        assert "conformance" not in text
        assert "os.kill(os.getpid(), 9)" in text, f"{script.name} does not kill itself"


def test_what_two_explorations_found_is_told_together_and_the_worst_counts() -> None:
    whole = found()

    clauses = {clause["clause"]: clause for clause in whole["clauses"]}
    assert (whole["killed"], whole["scenarios"]) == (2, 4)
    assert {name: clauses[name]["verdict"] for name in ("E01", "E02", "E06", "E09", "E10", "E18")} == {
        "E01": "PASS",
        "E02": "FAIL",
        "E06": "NOT APPLICABLE",
        "E09": "NOT RUN",
        "E10": "NOT RUN",
        "E18": "PASS",
    }
    assert (clauses["E01"]["scenarios"], clauses["E02"]["found"], len(clauses["E02"]["findings"])) == (6, 2, 1)
    assert clauses["E10"]["reason"] == "no node fails where it is explored"


def test_a_failure_is_resumed_at_the_node_that_failed() -> None:
    first = {"calls": ["outline", "images", "facts", "article"], "error": "RuntimeError: no"}
    second = {"calls": ["article", "online", "archive"], "output": "done"}

    good = judged(first, second)
    again = judged(first, {**second, "calls": ["outline", *second["calls"]]})
    stuck = judged(first, {"calls": [], "error": "LookupError: gone"})
    skipped = judged(first, {**second, "calls": ["online", "archive"]})
    never = judged({"calls": ["outline"], "output": "x"}, second)

    verdicts = [each["verdict"] for each in (good, again, stuck, skipped, never)]
    assert verdicts == ["PASS", "FAIL", "FAIL", "FAIL", "VACUOUS"]
    assert again["findings"][0]["message"] == "`article` had failed, and the resume called `outline` again."
    assert "could not be resumed: LookupError: gone" in stuck["findings"][0]["message"]


def test_the_life_with_a_failure_and_the_one_behind_it_are_real(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lives = []
    for fails in ("article", ""):
        failing.main("conformance.executors.plain_loop:subject", str(tmp_path), fails)
        lives.append(json.loads(capsys.readouterr().out))

    assert judged(*lives)["verdict"] == "PASS", lives


def test_what_a_subject_does_not_promise_is_no_fault() -> None:
    stuck = {"verdict": "FAIL", "reason": "", "scenarios": 1, "findings": []}

    whole = merged([report()], {"E10": stuck}, {"E10": "a failure is final"})

    assert [(c["verdict"], c["reason"]) for c in whole["clauses"] if c["clause"] == "E10"] == [
        ("NOT APPLICABLE", "a failure is final")
    ]


def test_no_two_subjects_have_one_title() -> None:
    titles = [subject.title for subject in subjects()]

    assert sorted(set(titles)) == sorted(titles)


def test_the_page_links_each_cell_to_its_story() -> None:
    shown = page({"loop": found(), "lost": {"error": "pip said no"}})

    assert "| clause | [Loop 1.2](#loop) |" in shown
    assert "| [E02](../../docs/reference/executor-clauses.md#e02) | [**FAIL**](#loop-e02) |" in shown
    assert "### Loop E02\n\nFAIL: title of E02" in shown
    assert " | [NOT APPLICABLE](#loop-not-tried) |" in shown
    assert "### Loop, not tried\n\n- E03 NOT APPLICABLE" in shown
    assert "`facts` was called again in life 2." in shown
    assert "NOT RUN: pip said no" in shown


def test_a_confirmation_counts_only_if_it_was_killed_and_says_so(tmp_path: Path) -> None:
    kill = "import os\nif not os.path.exists('x'):\n    open('x', 'w').close()\n    os.kill(os.getpid(), 9)\n"
    (tmp_path / "loop_E02.py").write_text(f"{kill}print('CONFIRMED - twice')")
    (tmp_path / "loop_E03.py").write_text("print('CONFIRMED - and not killed')")

    good, bad = (confirmed(tmp_path / f"loop_{clause}.py", sys.executable) for clause in ("E02", "E03"))

    assert (good["confirmed"], good["clause"], good["said"]) == (True, "E02", ["CONFIRMED - twice"])
    assert (bad["confirmed"], bad["first_life"]) == (False, 0)


def test_results_are_kept_and_replaced_one_by_one(tmp_path: Path) -> None:
    def try_one(subject: Subject) -> dict[str, Any]:
        return found(title=subject.title)

    assert main(["--subject", "burr_sqlite", "--results", str(tmp_path)], try_one) == 0
    assert main(["--subject", "plain_loop", "--results", str(tmp_path)], try_one) == 0
    assert main(["--subject", "nobody", "--results", str(tmp_path)], try_one) == 2

    assert list(json.loads((tmp_path / "executors.json").read_text())) == ["burr_sqlite", "plain_loop"]
    assert "[A plain loop 1.2](#a-plain-loop)" in (tmp_path / "executors.md").read_text()


def test_the_subject_that_needs_no_package_passes() -> None:
    report = explore("conformance.executors.plain_loop:subject", nodes.INPUTS, at=["online", "during-save:images"])

    verdicts = {clause.clause: clause.verdict for clause in report.clauses}
    assert report.ok, str(report)
    assert [verdicts[clause] for clause in ("E01", "E02", "E04", "E05", "E07", "E17")] == ["PASS"] * 6
