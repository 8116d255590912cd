"""Reports of `powerloss` and `faults` as what they are on the page: a check of the few clauses that they try."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from .power_loss import Count, PowerLoss, ToldLoss

__all__ = ["OTHERS", "as_check"]

OTHERS = ("powerloss", "faults")
"""The kinds of reports that can be read as a report of a check."""

_STRICT = "strict"
_REQUIRED = ("kill", "ext4", "journaled")
_OPENS = ("CORRUPT", "UNSTABLE", "RECOVERY", "WEDGED")
_TITLES = {
    "P01": "whatever the disk holds after a power loss, the store opens, loads and goes on",
    "P02": "no power loss takes an acknowledged save away, or brings what was never saved",
    "P03": "after a failed sync nothing is acknowledged that only the page cache holds",
}
_MOST_LINES = 100


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Model(_Part):
    """What was found under one model."""

    model: str
    tried: Count
    at_least: Count | None = None
    findings: tuple[ToldLoss, ...] = ()

    def count(self) -> str:
        return f"{self.tried}" if self.at_least is None else f"{self.tried} of at least {self.at_least}"


class _FailedSync(_Part):
    """What was found after one sync had failed."""

    sync: str
    told: tuple[str, ...] = ()
    models: tuple[_Model, ...] = ()


class _PowerLosses(_Part):
    """A report of `powerloss`."""

    target: str
    budget: int
    reason: str = ""
    calls: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    models: tuple[_Model, ...] = ()
    failed_syncs: tuple[_FailedSync, ...] = ()


def as_check(form: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON form of a check that says the same. Raises pydantic's `ValidationError` for a damaged report."""
    if form["kind"] == "faults":
        grade = f"{form.get('conclusion', '')}\nonly C03 and C04 were tried; a level takes a whole check"
        return {
            **form,
            "kind": "check",
            "level": None,
            "grade": grade,
            "not_implemented": [],
            "results": _clauses(form),
        }
    losses = _PowerLosses.model_validate(form)
    results = [_clause(losses, "P01"), _clause(losses, "P02"), _after_failed_syncs(losses)]
    notes = [f"up to {losses.budget} states of the disk were tried of each model", *_strictly(losses)]
    return {
        **form,
        "kind": "check",
        "ok": all(result["verdict"] != "FAIL" for result in results),
        "level": None,
        "grade": "what a power loss leaves\nonly P01, P02 and P03 were tried; a level takes a whole check",
        "not_implemented": [],
        "results": results,
        "notes": notes,
    }


def _clauses(form: Mapping[str, Any]) -> Any:
    return form.get("clauses")


def _clause(losses: _PowerLosses, clause: str) -> dict[str, Any]:
    required = [model for model in losses.models if model.model in _REQUIRED]
    tried = ", ".join(f"{model.count()} ({model.model})" for model in required)
    missing = [name for name in _REQUIRED if name not in [model.model for model in required]]
    findings = list(_findings(losses, required, clause))
    if findings:
        verdict, reason = "FAIL", findings[0]["message"]
    elif losses.reason or not required:
        verdict, reason = "NOT RUN", losses.reason or "no model was tried that is required"
    elif missing:
        verdict, reason = "UNKNOWN", f"not tried under {', '.join(missing)}; states of the disk tried: {tried}"
    else:
        verdict, reason = "PASS", f"states of the disk tried: {tried}"
    return _result(clause, verdict, reason, sum(model.tried for model in required), findings)


def _findings(losses: _PowerLosses, models: Sequence[_Model], clause: str) -> Iterator[dict[str, Any]]:
    """Give each finding of a clause once: what was found in the same words under another model only adds to it."""
    found: dict[tuple[str, str], list[tuple[_Model, ToldLoss]]] = {}
    for model in models:
        for finding in model.findings:
            if (finding.kind in _OPENS) == (clause == "P01"):
                found.setdefault((finding.kind, finding.message), []).append((model, finding))
    for alike in found.values():
        model, finding = alike[0]
        counted = ", ".join(f"{each.count} of {of.tried} ({of.model})" for of, each in alike)
        yield _told(clause, PowerLoss(model=model.model, calls=losses.calls, finding=finding), counted)


def _after_failed_syncs(losses: _PowerLosses) -> dict[str, Any]:
    findings = []
    for failed in losses.failed_syncs:
        for model in failed.models:
            for finding in model.findings:
                loss = PowerLoss(model=model.model, calls=losses.again, told=failed.told, finding=finding)
                counted = f"{finding.count} of {model.tried} ({model.model})"
                findings.append(_told("P03", loss, counted, f"{failed.sync}, fails with EIO"))
    count = len(losses.failed_syncs)
    if findings:
        verdict, reason = "FAIL", findings[0]["message"]
    elif not count:
        why = "no sync was made to fail: that is tried of a store that survives a power loss, under all models"
        verdict, reason = "NOT RUN", losses.reason or why
    else:
        verdict, reason = "PASS", f"{count} syncs failed, one after the other"
    return _result("P03", verdict, reason, count, findings)


def _told(clause: str, loss: PowerLoss, counted: str, scenario: str = "the power fails") -> dict[str, Any]:
    finding = loss.finding
    story = [f"scenario {scenario}"]
    story += [f"call {token}: {title} → {end}" for token, title, end in loss.ends()[:_MOST_LINES]]
    story += [f"on disk  {', '.join(finding.on_disk) or 'no file'}"]
    story += [f"lost     {words}" for words in finding.lost[:_MOST_LINES]]
    story += [f"found    in {counted} of the states tried that the disk may hold then"]
    story += [f"then     {words}" for words in finding.details[:_MOST_LINES]]
    story += [f"came     {finding.message}", f"why      {finding.words}"]
    message = f"{finding.kind} after a power loss ({loss.model}): {finding.message}"
    picture = loss.model_dump(mode="json")
    return {"clause": clause, "message": message, "story": story, "replay": None, "picture": picture}


def _strictly(losses: _PowerLosses) -> Iterator[str]:
    for model in losses.models:
        if model.model not in _REQUIRED:
            found = ", ".join(f"{finding.kind} in {finding.count}" for finding in model.findings)
            grade = ", a grade above what is required" if model.model == _STRICT else ""
            yield f"{model.model}{grade}: {found or 'no fault'} of {model.count()} states"


def _result(clause: str, verdict: str, reason: str, scenarios: int, findings: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "clause": clause,
        "title": _TITLES[clause],
        "verdict": verdict,
        "reason": reason,
        "scenarios": scenarios,
        "seconds": None,
        "findings": findings,
    }
