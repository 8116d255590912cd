"""What a rule says when it is broken: which rule, on which run, in one sentence, and by which two or three calls."""

from __future__ import annotations

from dataclasses import dataclass

from .calls import Call

__all__ = ["RULES", "Violation", "shown"]

RULES = {
    "H1": "what a load shows was saved",
    "H2": "a revision is one save, and a save one revision",
    "H3": "a save follows the record that it was based on",
    "H4": "every revision, and every conflict, comes from a save",
    "H5": "calls take effect between their start and their end, in one order",
    "H6": "a deleted run stays deleted, and what follows is another",
    "H7": "one call creates a run, and all see its inputs",
    "H8": "a node whose save was acknowledged is in every later load",
    "H9": "saves that one executor issues land in the order in which it issues them",
    "H10": "a worker that was stopped while another went on is refused when it wakes up",
}


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule. `kind` is its short name, as LOST_UPDATE; `calls` are those that conflict."""

    rule: str
    kind: str
    run_id: str
    sentence: str
    calls: tuple[Call, ...]


def shown(call: Call) -> str:
    """Return a call in a few words, for a sentence."""
    if call.operation == "delete":
        return f"the delete by {call.client}"
    if call.operation == "load":
        what = "nothing saved yet" if call.token is None else f"token {call.token}"
        return f"the load by {call.client} ({what}{_at(call.revision)})"
    if call.is_conflict:
        return f"the save by {call.client} from revision {call.expected} (refused as stale)"
    return f"the save of token {call.token} by {call.client}{_at(call.revision)}"


def _at(revision: int | None) -> str:
    return "" if revision is None else f" at revision {revision}"
