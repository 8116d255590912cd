"""What was found of a power loss, in plain data of bounded size, for a process that tells it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from ..powerloss.exploring import PowerLossFinding, PowerLossReport
from ..powerloss.faults_found import FaultKind
from ..powerloss.folding import folded
from ..powerloss.operations import Special
from .power_judge import Recoveries

__all__ = ["told_report"]


def told_report(report: PowerLossReport, recoveries: Recoveries) -> dict[str, Any]:
    """Return what became of a recording under one model.

    `model`, `tried`, `at_least` (None, or how many states there are at least, if not all were tried), `missed` (how
    many of these there was no time for, at least, without which nothing can be said of the others), `recoveries` (how
    many were survived when the power failed in their midst), `unfollowed` (why the calls of a recovery did not tell
    what happened, or ""), `hung` (in how many the store hung; see `HANGS`), `seconds`, and `findings`,
    see `_told_finding`.
    """
    return {
        "model": report.model.name,
        "tried": report.tried,
        "at_least": report.at_least,
        "missed": report.missed,
        "recoveries": recoveries.crashed,
        "unfollowed": recoveries.unfollowed,
        "hung": report.hung,
        "seconds": report.seconds,
        "findings": [_told_finding(finding) for finding in report.findings if not _is_told(finding, report.findings)],
    }


def _is_told(finding: PowerLossFinding, findings: Sequence[PowerLossFinding]) -> bool:
    """Whether a second power loss only shows what a first one shows: it does not open, or hangs, or a save is gone.

    That is if it is told in the same words, or the same kinds of operations are lost: to open a store may be to create.
    """
    shown = _SHOWN_BY_BOTH.get(finding.fault.kind, ())
    for first in findings:
        kind, message = first.fault.kind, first.fault.message
        if kind in shown and f": {kind}: " in finding.fault.message:
            causes = [_of_any_call(each.cause) for each in (first, *first.further)]
            if finding.fault.message.endswith(f": {message}") or _of_any_call(finding.cause) in causes:
                return True
    return False


_SHOWN_BY_BOTH = {
    FaultKind.RECOVERY: (FaultKind.CORRUPT, FaultKind.WEDGED),
    FaultKind.LOST_IN_RECOVERY: (FaultKind.LOST_ACK, FaultKind.PHANTOM, FaultKind.MIXED),
}


def _of_any_call(cause: frozenset[str]) -> set[str]:
    """Return "data" of "data in save"."""
    return {kind.partition(" in ")[0] for kind in cause}


def _told_finding(finding: PowerLossFinding) -> dict[str, Any]:
    """Return it in plain data of bounded size: enough for a story, and for a picture (see `folded`, and `Moment`).

    `fix` says what to do, `cause` which kinds of operations were lost. `further` are the same kind of fault with
    another cause: for each `message`, `words`, `lost`, `count`, `fix` and `cause`.
    """
    left = finding.state.tree.listing()
    return {
        "kind": finding.fault.kind.value,
        "message": finding.fault.message,
        "details": list(finding.fault.details),
        "words": finding.words,
        "fix": finding.fix,
        "cause": sorted(finding.cause),
        "further": [_told_further(each) for each in finding.further],
        "when": finding.when,
        "lost": _bounded([lost.words for lost in finding.lost]),
        "on_disk": _bounded([_told_file(path, content) for path, content in left.items()]),
        "left": [[path, _about(content)] for path, content in islice(left.items(), _SHOWN)],
        "count": finding.count,
        "acknowledged": list(finding.state.acknowledged),
        "invoked": list(finding.state.invoked),
        "timeline": [moment.to_dict() for moment in folded(finding.timeline)],
    }


def _told_further(finding: PowerLossFinding) -> dict[str, Any]:
    second = [words for words in finding.fault.details if words.startswith("lost in the second")]
    return {
        "message": finding.fault.message,
        "words": "; ".join([finding.words, *second[:_SHOWN]]),
        "fix": finding.fix,
        "cause": sorted(finding.cause),
        "lost": _bounded([lost.words for lost in finding.lost]),
        "count": finding.count,
    }


_SHOWN = 50
"""So many files, and lost operations, are told of one state."""


def _bounded(words: list[str]) -> list[str]:
    return words if len(words) <= _SHOWN else [*words[:_SHOWN], f"and {len(words) - _SHOWN} more"]


def _about(content: bytes | str | Special | None) -> str:
    """Say what a file is, in a few words: the end of a lane in the picture."""
    if isinstance(content, bytes):
        return f"{len(content)} bytes" + (", all zeros" if content and not content.strip(b"\0") else "")
    if isinstance(content, Special):
        return f"a {content.value}"
    return "a folder" if content is None else f"a link to {content}"


def _told_file(path: str, content: bytes | str | Special | None) -> str:
    if isinstance(content, bytes):
        return f"{path} ({len(content)} bytes)"
    if isinstance(content, Special):
        return f"{path} (a {content.value})"
    return f"{path}/" if content is None else f"{path} → {content}"
