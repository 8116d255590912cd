"""Reports of checks as `check --json` writes them, made up for tests."""

from __future__ import annotations

from typing import Any

from n00dles_testing.report.page_view import ClauseText

__all__ = ["CONTRACT", "STORY", "TIMELINE", "failed", "mark", "moment", "passed", "power_loss", "powerloss", "report"]

CONTRACT = [
    ClauseText(
        "S05", "level 1 (contract)", "no aliasing", "What the caller mutates is not stored.", "A save is a `copy`."
    ),
    ClauseText("S10", "level 1 (contract)", "damage is told", "A damaged record raises a typed error.", ""),
    ClauseText(
        "C02", "level 2 (crash-safe)", "kept after a kill", "Kept after SIGKILL.", "It dies.\n\nSeen in: a/b #1."
    ),
]

STORY = (
    "scenario a worker is killed",
    "open(S05-1) → open",
    "process 11: load_or_create('r', {'topic': 'cats'}) → inputs {'topic': 'cats'}, completed {}, order []",
    "process 11: save('r') with {'writer': 'On Cats'} → acknowledged",
    "process 11: was killed by SIGKILL right after its acknowledgement",
    "load_or_create('r', {'topic': 'cats'}) → inputs {'topic': 'cats'}, completed {}, order []",
    "allowed  completed {'writer': 'On Cats'}",
    "came     completed {}",
    "why      the save was acknowledged",
)


def passed(clause: str = "S05", **changes: Any) -> dict[str, Any]:
    """Return a clause that passed."""
    form = {"clause": clause, "title": "no aliasing", "verdict": "PASS", "reason": "", "scenarios": 3, "seconds": 0.5}
    return {**form, "findings": [], **changes}


def failed(clause: str = "C02", story: tuple[str, ...] = STORY, **changes: Any) -> dict[str, Any]:
    """Return a clause that failed, with one finding."""
    finding = {
        "clause": clause,
        "message": "completed['writer'] is missing",
        "story": list(story),
        "replay": f"n00dles-testing check x:y --clause {clause} --seed 0",
    }
    return passed(clause, verdict="FAIL", reason=finding["message"], findings=[finding], **changes)


def report(
    target: str = "package.stores:Mine", results: list[dict[str, Any]] | None = None, **changes: Any
) -> dict[str, Any]:
    """Return a whole report."""
    results = [passed(), failed()] if results is None else results
    return {
        "format": "n00dles-testing-report",
        "version": 1,
        "kind": "check",
        "written_by": "n00dles-testing 0.1.0",
        "written_at": "2026-11-29T22:18:14Z",
        "python": "3.11.7",
        "platform": "Linux",
        "target": target,
        "ok": all(each["verdict"] != "FAIL" for each in results),
        "level": None,
        "grade": "the store breaks C02\nnot checked by this release: damage (S10); so no level is given",
        "not_implemented": ["S10"],
        "results": results,
        "notes": ["the factory gets fresh temporary folders"],
        "seed": 0,
        "seconds": 1.5,
        **changes,
    }


def moment(words: str, fate: str, path: str = "", during: str | None = "1", **changes: Any) -> dict[str, Any]:
    """Return one operation of a time line; `what` is "write" unless told."""
    form = {"position": 1, "words": words, "fate": fate, "path": path, "during": during, "what": "write"}
    return {**form, "to_path": "", "size": 5, "times": 1, **changes}


def mark(what: str, token: str) -> dict[str, Any]:
    """Return the mark of a call that begins ("call"), or ends ("return")."""
    return moment(f"call `{token}`", "mark", during=token, what=what)


TIMELINE = [
    mark("call", "1"),
    moment("the creation of `a.tmp`", "synced", "a.tmp", what="create"),
    moment("3 writes to `a.tmp` (15 bytes)", "lost", "a.tmp", times=3),
    moment("the rename of `a.tmp` to `a`", "kept", "a.tmp", what="rename", to_path="a"),
    moment("fsync of the folder", "sync", what="sync"),
    mark("return", "1"),
    mark("call", "2"),
    moment("the removal of `b`", "kept", "b", "2", what="unlink"),
]


def power_loss(timeline: list[dict[str, Any]] | None = None, **changes: Any) -> dict[str, Any]:
    """Return one kind of fault after a power loss, as `powerloss --json` has it."""
    form = {
        "kind": "CORRUPT",
        "message": "it does not open",
        "words": "the rename of `a.tmp` to `a` reached the disk, the data of `a` (15 bytes) did not",
        "when": "after the removal of `b`, at the end",
        "details": [],
        "lost": ["the data of `a` (15 bytes) in call `1`"],
        "on_disk": ["a (0 bytes)"],
        "left": [["a", "0 bytes"]],
        "count": 3,
        "acknowledged": ["1"],
        "invoked": ["1", "2"],
        "timeline": TIMELINE if timeline is None else timeline,
    }
    return {**form, **changes}


def powerloss(findings: dict[str, list[dict[str, Any]]] | None = None, **changes: Any) -> dict[str, Any]:
    """Return a whole report of `powerloss`, with the findings under each model."""
    found = {"ext4": [power_loss()], "journaled": [power_loss(count=5)]} if findings is None else findings
    models = [
        {"model": name, "tried": 40, "at_least": None, "seconds": 0.5, "findings": found.get(name, [])}
        for name in ("kill", "ext4", "journaled", "strict")
    ]
    form = {"kind": "powerloss", "calls": ["save('r') with {}", "delete('r')"], "again": ["save('s') with {}"]}
    common = {key: value for key, value in report().items() if key not in ("results", "grade", "level", "notes")}
    return {**common, **form, "budget": 600, "reason": "", "models": models, "failed_syncs": [], **changes}
