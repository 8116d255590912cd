"""Trying one subject: it is killed at each of its points, then twice in a row, and each finding is shown without us."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from n00dles_testing.crash.clauses import CLAUSES

from .environments import ROOT, WORK, interpreter, prepare
from .failing import failed_and_resumed
from .nodes import INPUTS
from .subjects import Subject

__all__ = ["TrialError", "confirmed", "merged", "tried"]

CHAINS = 40
"""How many scenarios the chains of two kills get in all, their first kills included."""
_LIFE_SECONDS = "60"
_NOT_TRIED = {
    "E08": "a framework builds its graphs in its own way; this trial builds one that is right",
    "E09": "the pipeline and its inputs stay the same here",
    "E10": "no node fails where it is explored",
    "E12": "the framework's own store is not made to fail",
    "E13": "what is tried here is kills",
    "E14": "no node of this pipeline fails",
    "E15": "every output of this pipeline is JSON",
    "E16": "each run has one worker at a time here",
    "E18": "one life of each run was killed, and not two in a row",
}
"""What this trial does not try, and why: no verdict on the subject."""


class TrialError(Exception):
    """A subject could not be explored; the message is what the explorer said."""


def tried(subject: Subject) -> dict[str, Any]:
    """Install a subject, explore it, run its confirmations, and return all that was found, in JSON types.

    Raises `InstallError` and `TrialError`.
    """
    versions = prepare(subject.name, subject.packages, with_ours=not subject.is_apart) if subject.packages else {}
    ours = sys.executable if subject.is_apart or not subject.packages else interpreter(subject.name)
    reports = [_explored(subject, ours), _explored(subject, ours, "--lives", "2", "--budget", str(CHAINS))]
    theirs = interpreter(subject.name) if subject.packages else sys.executable
    return {
        "title": subject.title,
        "about": subject.about,
        "package": subject.package,
        "version": versions.get(subject.package, ""),
        **merged(reports, {} if "E10" in subject.gaps else {"E10": _failing(subject, ours)}, subject.gaps),
        "confirmations": [confirmed(script, theirs) for script in subject.confirmations],
    }


def _failing(subject: Subject, python: str) -> dict[str, Any]:
    if subject.is_apart:
        reason = "its functions are in another interpreter, where none of them is made to fail"
        return {"verdict": "NOT RUN", "reason": reason, "scenarios": 0}
    return failed_and_resumed(subject, python)


def _explored(subject: Subject, python: str, *options: str) -> dict[str, Any]:
    folder = WORK / subject.name
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    inputs = [each for name, text in INPUTS.items() for each in ("--input", f"{name}={text}")]
    command = [python, "-P", "-m", "n00dles_testing", "explore", subject.target, *inputs, "--time-limit", _LIFE_SECONDS]
    with open(folder / "explore.log", "w", encoding="utf-8") as log:
        done = subprocess.run(
            [*command, *options, "--json", str(report)], cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, check=False
        )
    if not report.is_file():
        said = (folder / "explore.log").read_text("utf-8").strip().splitlines()
        raise TrialError(f"explore ended with {done.returncode}: {(said or ['it said nothing'])[-1][:500]}")
    return dict(json.loads(report.read_text("utf-8")))


def merged(
    reports: Sequence[Mapping[str, Any]],
    beside: Mapping[str, Mapping[str, Any]] | None = None,
    gaps: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return what several explorations of one subject have found together: of each clause, the worst.

    `beside` are clauses that were tried otherwise, and `gaps` those that the subject does not promise, with the reason.
    """
    clauses: dict[str, dict[str, Any]] = {}
    for each in (clause for report in reports for clause in report["clauses"]):
        known = clauses.setdefault(each["clause"], {**each, "scenarios": 0, "findings": []})
        if _weight(each) > _weight(known):
            known |= {"verdict": each["verdict"], "reason": each["reason"]}
        known["scenarios"] += each["scenarios"]
        known["findings"] += each["findings"]
    for clause in CLAUSES:
        nothing = {"clause": clause.id, "title": clause.title, "verdict": "NOT RUN", "scenarios": 0, "findings": []}
        known = clauses.setdefault(clause.id, nothing)
        if clause.id in _NOT_TRIED and known["verdict"] in ("NOT RUN", "NOT APPLICABLE"):
            known |= {"verdict": "NOT RUN", "reason": _NOT_TRIED[clause.id]}
        known |= (beside or {}).get(clause.id, {})
        if clause.id in (gaps or {}):
            known |= {"verdict": "NOT APPLICABLE", "reason": (gaps or {})[clause.id], "findings": []}
    rows = [row for report in reports for row in report["rows"]]
    return {
        "points": reports[0]["points"],
        "scenarios": len(rows),
        "killed": sum(row["killed_by"] == 9 for row in rows),
        "seconds": round(sum(report["seconds"] for report in reports), 1),
        "notes": list(dict.fromkeys(note for report in reports for note in report["notes"])),
        "clauses": [_brief(clauses[clause.id]) for clause in CLAUSES],
    }


def _weight(clause: Mapping[str, Any]) -> int:
    order = ("NOT RUN", "NOT APPLICABLE", "PASS", "VACUOUS", "UNKNOWN", "FAIL")
    return order.index(clause["verdict"])


def _brief(clause: Mapping[str, Any]) -> dict[str, Any]:
    """Return a clause with the first of its findings of each kind, and how many there were."""
    kinds: dict[str, dict[str, Any]] = {}
    for finding in clause["findings"]:
        kinds.setdefault(finding["message"].partition(" in life ")[0], finding)
    return {
        "clause": clause["clause"],
        "title": clause["title"],
        "verdict": clause["verdict"],
        "reason": clause["reason"],
        "scenarios": clause["scenarios"],
        "found": len(clause["findings"]),
        "findings": list(kinds.values())[:3],
    }


def confirmed(script: Path, python: str) -> dict[str, Any]:
    """Run a confirmation twice in one empty folder, and return what came: it kills itself, then tells.

    It is confirmed if the first run died by SIGKILL, and the last line of the second begins with CONFIRMED.
    """
    with tempfile.TemporaryDirectory(prefix="n00dles-confirmation-") as folder:
        lives = [
            subprocess.run([python, str(script)], cwd=folder, capture_output=True, text=True, check=False, timeout=120)
            for _ in range(2)
        ]
    said = lives[1].stdout.strip().splitlines() or [lives[1].stderr.strip()[-500:]]
    return {
        "script": script.name,
        "clause": re.findall(r"_(E[0-9]{2})", script.stem)[-1],
        "first_life": lives[0].returncode,
        "said": said,
        "confirmed": lives[0].returncode == -9 and said[-1].startswith("CONFIRMED"),
    }
