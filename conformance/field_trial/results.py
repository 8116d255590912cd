"""What is kept of a subject: its versions, and a verdict a clause with a short story, without paths of this machine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from n00dles_testing.conformance.contract import LEVELS
from n00dles_testing.conformance.registry import implemented
from n00dles_testing.report.json_file import write_whole

from .checking import Checked
from .confirming import Confirmation
from .subjects import Subject, subjects

__all__ = ["BY_HAND", "CLAUSES", "FAILS", "NOT_TRIED", "failed_before", "read_all", "trimmed", "word", "write"]

CLAUSES = [clause for _, clauses in LEVELS.values() for clause in clauses]
_PATH = re.compile(r"(?<![\w.:/])/(?:root|tmp|work|home|usr|var|opt|private|Users)(?:/[^\s/'\"`,;:)]+)+")
_SHOWN = ("in", "on", "lost", "found", "hangs", "raised", "allowed", "came", "why", "fix")
FAILS = "**fails**"
BY_HAND = "**fails**, by hand"
NOT_TRIED = "NOT TRIED"
_FINDINGS = 2
_LINES = 22
_WIDTH = 240


def trimmed(
    subject: Subject, found: Checked, versions: Mapping[str, str], confirmations: Iterable[Confirmation]
) -> dict[str, Any]:
    """Return what is written of a subject that was checked."""
    confirmations = list(confirmations)
    shown = {each.clause for each in confirmations if each.confirmed}
    results = [
        _result(found.results[clause]) if clause in found.results else _not_tried(clause)
        for clause in CLAUSES
        if clause in found.results or clause in shown
    ]
    return {
        "subject": subject.name,
        "title": subject.title,
        "about": subject.about,
        "versions": dict(versions),
        "checked_at": found.at,
        "seconds": round(found.seconds),
        "seed": found.seed,
        "gaps": dict(subject.gaps),
        "confirmations": [each.as_dict() for each in confirmations],
        "results": results,
    }


def failed_before(subject: Subject, reason: str) -> dict[str, Any]:
    """Return what is written of a subject that could not be installed, opened or served."""
    return {
        "subject": subject.name,
        "title": subject.title,
        "about": subject.about,
        "versions": {},
        "not_run": _plain(reason),
        "gaps": dict(subject.gaps),
        "confirmations": [],
        "results": [],
    }


def word(result: Mapping[str, Any], subject: Mapping[str, Any]) -> str:
    """Return the word of a clause in the table: `fails` only of what the subject promises, and what is confirmed."""
    clause, verdict = result["clause"], result["verdict"]
    shown = any(each["clause"] == clause and each["confirmed"] for each in subject["confirmations"])
    if verdict in ("PASS", NOT_TRIED) and shown:
        return BY_HAND
    if verdict != "FAIL":
        return {"PASS": "pass", "NOT APPLICABLE": "–"}.get(verdict, str(verdict).lower())
    if clause in subject["gaps"]:
        return "gap"
    return FAILS if shown else "fails?"


def write(folder: Path, content: Mapping[str, Any]) -> Path:
    """Write the JSON of a subject."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{content['subject']}.json"
    write_whole(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return path


def read_all(folder: Path) -> list[dict[str, Any]]:
    """Return what is there of all subjects, by name; of one that was never tried it says so."""
    paths = {each: folder / f"{each.name}.json" for each in subjects()}
    return [
        json.loads(path.read_text("utf-8")) if path.is_file() else failed_before(subject, "nobody has tried it yet")
        for subject, path in paths.items()
    ]


def _result(result: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "clause": result["clause"],
        "title": result["title"],
        "verdict": result["verdict"],
        "reason": _short(result["reason"]),
        "scenarios": result["scenarios"],
        "findings": [
            {
                "message": _short(each["message"]),
                "story": _story(each["story"]),
                "replay": _plain(each["replay"] or "").replace(" --seed 0", ""),
            }
            for each in result["findings"][:_FINDINGS]
        ],
        "more": max(0, len(result["findings"]) - _FINDINGS),
    }


def _not_tried(clause: str) -> dict[str, Any]:
    """Return the result of a clause that only a script has shown so far."""
    title = next(each.title for each in implemented() if each.id == clause)
    told = {"clause": clause, "title": title, "verdict": NOT_TRIED, "reason": "", "scenarios": 0}
    return {**told, "findings": [], "more": 0}


def _story(lines: Iterable[str]) -> list[str]:
    """Return the calls as far as there is room, and behind them all that says what was allowed and what came."""
    told = [_short(line) for line in lines]
    last = [line for line in told if line.split(" ")[0] in _SHOWN]
    calls = [line for line in told if line not in last]
    room = max(_LINES - len(last), _LINES // 3)
    left_out = [f"… {len(calls) - room} more lines …"] if len(calls) > room else []
    return [*calls[:room], *left_out, *last[:_LINES]]


def _short(text: str) -> str:
    plain = _plain(text)
    return plain if len(plain) <= _WIDTH else f"{plain[:_WIDTH]}…"


def _plain(text: str) -> str:
    """Return a text with the name of a file instead of the path to it."""
    return _PATH.sub(lambda found: f"…/{found[0].rpartition('/')[2]}", text)
