"""Reports of `powerloss` and `faults` as what they are on the page: a check of the few clauses that they try."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from ..conformance.replay import powerloss_line
from ..powerloss.brief import brief
from ..powerloss.exploring import HANGS
from .power_loss import Count, PowerLoss, ToldLoss

__all__ = ["OTHERS", "as_check", "verdicts_of_power_losses"]

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
    missed: Count = 0
    hung: Count = 0
    unfollowed: str = ""
    findings: tuple[ToldLoss, ...] = ()

    def count(self) -> str:
        return f"{self.tried}" if self.at_least is None else f"sampled {self.tried} of at least {self.at_least}"


class _FailedSync(_Part):
    """What was found after one sync had failed."""

    sync: str
    told: tuple[str, ...] = ()
    models: tuple[_Model, ...] = ()


class _PowerLosses(_Part):
    """A report of `powerloss`."""

    target: str
    budget: int
    seed: int = 0
    reason: str = ""
    no_failed_syncs: str = ""
    calls: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    models: tuple[_Model, ...] = ()
    failed_syncs: tuple[_FailedSync, ...] = ()
    untried: Count = 0


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
        "ok": form.get("ok") is not False and all(result["verdict"] != "FAIL" for result in results),
        "level": None,
        "grade": "what a power loss leaves\nonly P01, P02 and P03 were tried; a level takes a whole check",
        "not_implemented": [],
        "results": results,
        "notes": notes,
    }


def verdicts_of_power_losses(form: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return `clause`, `title`, `verdict` and `reason` of P01, P02 and P03, as a report of `powerloss` shows them."""
    results = as_check({**form, "kind": "powerloss"})["results"]
    return [{name: each[name] for name in ("clause", "title", "verdict", "reason")} for each in results]


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
    elif doubt := _doubt(required, clause):
        verdict, reason = "UNKNOWN", f"{doubt}; states of the disk tried: {tried}"
    else:
        verdict, reason = "PASS", f"states of the disk tried: {tried}"
    return _result(clause, verdict, reason, sum(model.tried for model in required), findings)


def _doubt(models: Sequence[_Model], clause: str) -> str:
    """Say what was not tried that must be, if anything."""
    for model in models:
        if model.missed and model.hung >= HANGS:
            return f"the store hung in {model.hung} states, so the others were not tried ({model.model})"
        if model.missed:
            return f"there was no time for what the disk may hold at each crash position ({model.model})"
        if model.unfollowed and clause != "P03":
            return f"whether a second power loss is survived cannot be told ({model.model}): {model.unfollowed}"
    return ""


def _findings(losses: _PowerLosses, models: Sequence[_Model], clause: str) -> Iterator[dict[str, Any]]:
    """Give each finding of a clause once: what was lost, or said, under another model as well only adds to it."""
    found: dict[tuple[str, tuple[str, ...], str], list[tuple[_Model, ToldLoss]]] = {}
    for model in models:
        for finding in model.findings:
            if (finding.kind in _OPENS) == (clause == "P01"):
                message = "" if finding.cause else finding.message
                found.setdefault((finding.kind, finding.cause, message), []).append((model, finding))
    for alike in found.values():
        model, finding = alike[0]
        counted = ", ".join(f"{each.count} of the {of.tried} under {of.model}" for of, each in alike)
        loss = PowerLoss(model=model.model, calls=losses.calls, finding=finding)
        replay = powerloss_line(losses.target, [of.model for of, _ in alike], losses.seed, losses.budget)
        yield _told(clause, loss, counted, replay)


def _after_failed_syncs(losses: _PowerLosses) -> dict[str, Any]:
    findings = []
    for failed in losses.failed_syncs:
        for model in failed.models:
            for finding in model.findings:
                loss = PowerLoss(model=model.model, calls=losses.again, told=failed.told, finding=finding)
                counted = f"{finding.count} of the {model.tried} under {model.model}"
                replay = powerloss_line(losses.target, [], losses.seed, losses.budget)
                findings.append(_told("P03", loss, counted, replay, f"{failed.sync}, fails with EIO"))
    count = len(losses.failed_syncs)
    doubt = _doubt([model for failed in losses.failed_syncs for model in failed.models], "P03")
    if findings:
        verdict, reason = "FAIL", findings[0]["message"]
    elif not count:
        why = "no sync was made to fail: that is tried of a store that survives a power loss, under all models"
        verdict, reason = "NOT RUN", losses.reason or losses.no_failed_syncs or why
    elif doubt or losses.untried:
        verdict, reason = "UNKNOWN", doubt or f"there was no time for {losses.untried} more syncs that fail"
    else:
        verdict, reason = "PASS", f"{count} syncs failed in turn"
    return _result("P03", verdict, reason, count, findings)


def _told(clause: str, loss: PowerLoss, counted: str, replay: str, scenario: str = "the power fails") -> dict[str, Any]:
    finding = loss.finding
    story = [f"scenario {scenario}"]
    story += [f"call {token}: {title} → {end}" for token, title, end in loss.ends()[:_MOST_LINES]]
    story += [f"on disk  {', '.join(finding.on_disk) or 'no file'}"]
    story += [f"lost     {words}" for words in finding.lost[:_MOST_LINES]]
    story += [f"found    in these disk states that were tried: {counted}"]
    story += [f"then     {words}" for words in finding.details[:_MOST_LINES]]
    story += [f"came     {finding.message}", f"why      {finding.words}"]
    story += [f"fix      {finding.fix}"] if finding.fix else []
    story += [f"also     {other.words} → {other.fix}" for other in finding.further[:_MOST_LINES]]
    story = [brief(line) for line in story]
    message = f"{finding.kind} after a power loss ({loss.model}): {finding.message}"
    picture = loss.model_dump(mode="json")
    return {"clause": clause, "message": message, "story": story, "replay": replay, "picture": picture}


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
