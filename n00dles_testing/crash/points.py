"""Crash points: the moments of a run at which it can be killed or disturbed, each with a stable name.

They are enumerated from what one undisturbed run did, so a point that is listed was really passed. Saves are addressed
by the node whose output they are the first to carry, not by a number: members of a fan-out may share a save, and a
shared counter would have moved on by the time the save is done.
"""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

__all__ = ["OPENING", "How", "Kind", "Occurrences", "Plan", "Point", "choose", "enumerate_points", "points_of"]


class How(StrEnum):
    """What is done to a life at its point. A kill is the default, and is not written in the id of a point."""

    KILL = "kill"
    """SIGKILL; in-process what stands for it."""

    INTERRUPT = "interrupt"
    """SIGINT to the process, as Ctrl-C sends it; in-process what asyncio makes of one."""

    CANCEL = "cancel"
    """The task of the run is cancelled."""

    TIMEOUT = "timeout"
    """A time limit around the run ends at this moment."""

    REFUSED = "refused"
    """The store fails this save before it commits, and every one after it in this life."""

    REPLY_LOST = "reply-lost"
    """The store commits this save and its reply is lost; from then on it is unreachable in this life."""

    REFUSED_ONCE = "refused-once"
    """As REFUSED, but only this once: the life has to go on."""

    REPLY_LOST_ONCE = "reply-lost-once"
    """As REPLY_LOST, but only this once: the life has to go on."""

    SLOW = "slow"
    """This save takes long; the life has to go on."""

    @property
    def is_store_fault(self) -> bool:
        """Whether the store does it, in a save."""
        return self in _STORE_FAULTS

    @property
    def stays(self) -> bool:
        """Whether the next life is lived in the same process: what the nodes returned is still in hand there."""
        return self in (How.REFUSED, How.REPLY_LOST)

    def label(self, moment: str) -> str:
        """Say in words that it is done at this moment; of a store fault, to this save."""
        return _HOW_LABELS[self].format(moment)

    @classmethod
    def read(cls, given: str | Iterable[str] | None, at: Iterable[str] | None = None) -> tuple[How, ...]:
        """Return what is wanted: one of them, several, or "all"; kills alone if nothing is given, and what `at` names.

        Raises `ValueError` for what is none.
        """
        if given is None:
            named = {_split_how(text)[0] for text in at or ()}
            return tuple(how for how in cls if how is cls.KILL or how in named)
        names = [given] if isinstance(given, str) else list(given)
        known = ", ".join(cls)
        if wrong := [name for name in names if name != "all" and name not in cls.__members__.values()]:
            raise ValueError(f"how={wrong[0]!r} is not known; choose of {known}, or all.")
        if not names:
            raise ValueError(f"how= names nothing; choose of {known}, or all.")
        return tuple(how for how in cls if "all" in names or how in names)


_STORE_FAULTS = frozenset({How.REFUSED, How.REPLY_LOST, How.REFUSED_ONCE, How.REPLY_LOST_ONCE, How.SLOW})


class Kind(StrEnum):
    """What the process is doing at that moment."""

    BEFORE_CREATE = "before-create"
    AFTER_CREATE = "after-create"
    """Around the store's `load_or_create`: the life before the first checkpoint, which may leave nothing to resume."""

    RUN_STARTED = "run-started"
    """The record is loaded; nothing has been saved or called in this life."""

    BEFORE_OPENING_SAVE = "before-opening-save"
    AFTER_OPENING_SAVE = "after-opening-save"
    """Around a save that carries no output: with it a resumed life begins, or a failed attempt is counted."""

    BEFORE = "before"
    """The node is about to be called."""

    DURING = "during"
    """In the middle of the node: at a line of its body, or when the LLM has been paid and its reply is not here."""

    AFTER = "after"
    """The node has returned: its effects are done, its output is not saved."""

    BEFORE_SAVE = "before-save"
    AFTER_SAVE = "after-save"
    """Around the save that carries the node's output."""

    DURING_SAVE = "during-save"
    DURING_OPENING_SAVE = "during-opening-save"
    """A home-made loop has emptied one of its files to write it anew, or is about to put one in another's place."""

    ROUTED = "routed"
    """A branch has chosen its route, which has not been started."""

    JOINED = "joined"
    """All members of a fan-out are stored; what follows has not been started."""

    RUN_FINISHED = "run-finished"
    """Everything is stored; `run` has not returned."""

    AWAIT = "await"
    """The run's own task gives way to others, for the n-th time; there it can be cancelled or timed out, not killed."""


_LABELS = {
    Kind.BEFORE_CREATE: "before the record is made",
    Kind.AFTER_CREATE: "after the record is made",
    Kind.RUN_STARTED: "run started",
    Kind.BEFORE_OPENING_SAVE: "before the save without outputs",
    Kind.AFTER_OPENING_SAVE: "after the save without outputs",
    Kind.BEFORE: "before {}",
    Kind.DURING: "during {}",
    Kind.AFTER: "after {}, not saved",
    Kind.BEFORE_SAVE: "before the save of {}",
    Kind.AFTER_SAVE: "after the save of {}",
    Kind.DURING_SAVE: "during the save of {}",
    Kind.DURING_OPENING_SAVE: "during a save without outputs",
    Kind.ROUTED: "{} routed",
    Kind.JOINED: "{} joined",
    Kind.RUN_FINISHED: "run finished",
    Kind.AWAIT: "at an await",
}

_AS_IT_GOES_ON = {
    Kind.RUN_STARTED: "as the run started",
    Kind.ROUTED: "as {} routed",
    Kind.JOINED: "as {} joined",
    Kind.RUN_FINISHED: "as the run finished",
}
"""How a moment is called where something other than the moment itself happens to the run."""

_HOW_LABELS = {
    How.KILL: "{}",
    How.INTERRUPT: "interrupted {}",
    How.CANCEL: "cancelled {}",
    How.TIMEOUT: "timed out {}",
    How.REFUSED: "{} refused, and all after it",
    How.REPLY_LOST: "reply to {} lost, then no store",
    How.REFUSED_ONCE: "{} refused once",
    How.REPLY_LOST_ONCE: "reply to {} lost once",
    How.SLOW: "{} is slow",
}

_CREATION = (Kind.BEFORE_CREATE, Kind.AFTER_CREATE)
OPENING = (Kind.BEFORE_OPENING_SAVE, Kind.AFTER_OPENING_SAVE)
OF_A_NODE = (Kind.BEFORE, Kind.DURING, Kind.AFTER, Kind.BEFORE_SAVE, Kind.AFTER_SAVE, Kind.DURING_SAVE)
"""Those whose subject is a node, and not a fan-out or a branch."""


@dataclass(frozen=True, slots=True)
class Point:
    """One crash point. `str` gives its stable id, as in `after-save:writer`; `parse` reads it.

    `occurrence` counts from 1 within one life: `before:writer#2` is the second attempt of `writer`. `how` is what is
    done there: `cancel@after:writer` cancels where `after:writer` kills.
    """

    kind: Kind
    subject: str = ""
    occurrence: int = 1
    how: How = How.KILL

    def __str__(self) -> str:
        number = f"#{self.occurrence}" if self.occurrence > 1 else ""
        how = "" if self.how is How.KILL else f"{self.how}@"
        return f"{how}{self.kind}:{self.subject}{number}" if self.subject else f"{how}{self.kind}{number}"

    @property
    def moment(self) -> Point:
        """The same moment, whatever is done at it."""
        return self if self.how is How.KILL else Point(self.kind, self.subject, self.occurrence)

    def disturbed(self, how: How) -> Point:
        """Return the point at which `how` is done at this moment."""
        return Point(self.kind, self.subject, self.occurrence, how)

    def allows(self, how: How) -> bool:
        """Whether `how` can be done at this moment: the store fails in saves, and nobody is killed at an await."""
        if how.is_store_fault:
            return self.kind in _SAVES
        return self.kind is not Kind.AWAIT or how in (How.CANCEL, How.TIMEOUT)

    @property
    def label(self) -> str:
        """The point in words, for a table."""
        number = f" (time {self.occurrence})" if self.occurrence > 1 else ""
        if self.kind is Kind.AWAIT:
            words = f"at await {self.occurrence}"
        elif self.how.is_store_fault:
            words = (f"the save of {self.subject}" if self.subject else "the save without outputs") + number
        else:
            labels = _LABELS if self.how is How.KILL else {**_LABELS, **_AS_IT_GOES_ON}
            words = labels[self.kind].format(self.subject) + number
        return self.how.label(words)

    @classmethod
    def parse(cls, text: str) -> Point:
        """Read an id. Raises `ValueError` naming the kinds if it is none."""
        return _parse(text)


_SAVES = (Kind.BEFORE_SAVE, Kind.BEFORE_OPENING_SAVE)


@lru_cache(maxsize=4096)
def _parse(text: str) -> Point:
    how, moment = _split_how(text)
    kind, _, rest = moment.partition(":")
    head, number = _split_number(rest if rest else kind)
    try:
        found = Kind(kind if rest else head)
    except ValueError:
        raise ValueError(
            f"{text!r} is no crash point. Write one of: {', '.join(_example(kind) for kind in Kind)}."
        ) from None
    subject = head if rest else ""
    if bool(subject) != ("{}" in _LABELS[found]):
        raise ValueError(f"{text!r} is no crash point: write it as {_example(found)}.")
    point = Point(found, subject, number, how)
    if not point.allows(how):
        where = "before-save:NAME and before-opening-save" if how.is_store_fault else "an await, by cancel and timeout"
        raise ValueError(f"{text!r} is no crash point: {how} is possible at {where} only.")
    return point


def _split_how(text: str) -> tuple[How, str]:
    head, at, rest = text.partition("@")
    # A node's name may have an @ of its own.
    return (How(head), rest) if at and head in How.__members__.values() else (How.KILL, text)


def _split_number(text: str) -> tuple[str, int]:
    match = re.fullmatch(r"(.*)#([1-9][0-9]*)", text)
    return (match[1], int(match[2])) if match else (text, 1)


def _example(kind: Kind) -> str:
    if kind is Kind.AWAIT:
        return f"{How.CANCEL}@{kind}"
    return f"{kind}:NAME" if "{}" in _LABELS[kind] else str(kind)


Plan = tuple[Point, ...]
"""Where a run is disturbed: the point of its first life, of its second, …; the last one is what the plan is for."""


_BY_EVENT = {
    "run_started": (Kind.RUN_STARTED, ""),
    "node_started": (Kind.BEFORE, "node"),
    "call_start": (Kind.DURING, "node"),
    "node_returned": (Kind.AFTER, "node"),
    "branch_routed": (Kind.ROUTED, "branch"),
    "group_joined": (Kind.JOINED, "group"),
    "run_finished": (Kind.RUN_FINISHED, ""),
    "create_start": (Kind.BEFORE_CREATE, ""),
    "create_end": (Kind.AFTER_CREATE, ""),
}


def points_of(event: str, fields: Mapping[str, Any]) -> list[Point]:
    """Return the points that something seen stands for, each without its occurrence.

    `event` is an event of the executor, or `call_start`, `create_start`, `create_end`, `save_start` or `save_end`
    as in the ledger.
    """
    if event == "awaits":
        return [Point(Kind.AWAIT)] * int(fields["count"])
    if event in _BY_EVENT:
        kind, subject = _BY_EVENT[event]
        return [Point(kind, fields[subject] if subject else "")]
    if event == "save_start":
        return [Point(Kind.BEFORE_SAVE, node) for node in fields["new"]] or [Point(Kind.BEFORE_OPENING_SAVE)]
    if event == "save_end" and "error" not in fields:
        return [Point(Kind.AFTER_SAVE, node) for node in fields["new"]] or [Point(Kind.AFTER_OPENING_SAVE)]
    if event == "checkpoint_writing":
        return [Point(Kind.DURING_SAVE, fields["node"]) if fields["node"] else Point(Kind.DURING_OPENING_SAVE)]
    return []


class Occurrences:
    """Numbers the points of one life as they are passed."""

    def __init__(self) -> None:
        self._seen: Counter[Point] = Counter()

    def number(self, point: Point) -> Point:
        """Return `point` with its occurrence: how often it has been passed, this time included."""
        self._seen[point] += 1
        return Point(point.kind, point.subject, self._seen[point])


def enumerate_points(passed: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Point]:
    """List the crash points of an undisturbed run from its events, in order, each once.

    `passed` is what was seen, as in `points_of`. Of the saves without outputs only the first is listed: how many there
    are may differ from run to run, where attempts fail side by side.
    """
    occurrences = Occurrences()
    points = [occurrences.number(point) for event, fields in passed for point in points_of(event, fields)]
    return [point for point in points if point.occurrence == 1 or point.kind not in (*OPENING, *_CREATION)]


def choose(plans: Sequence[Plan], at: Sequence[str] | None, budget: int | None) -> list[Plan]:
    """Return the plans to try: those whose last point `at` names, at most `budget` of them, spread evenly.

    An entry of `at` is an id (`after-save:writer`, or `cancel@after-save:writer`), a pattern (`*-save:*`), a kind
    (`during`), a node (`writer`), or what is done (`cancel`).
    Raises `ValueError` for an entry that fits no point.
    """
    chosen = list(plans)
    if at is not None:
        for text in at:
            if not any(_fits(plan[-1], text) for plan in plans):
                known = ", ".join(str(plan[-1]) for plan in plans)
                raise ValueError(f"this pipeline has no crash point {text!r}. It has: {known}.")
        chosen = [plan for plan in plans if any(_fits(plan[-1], text) for text in at)]
    if budget is None or budget >= len(chosen):
        return chosen
    return [chosen[index * len(chosen) // budget] for index in range(budget)]


def _fits(point: Point, text: str) -> bool:
    ids = (str(point), str(point.moment))
    return text in (*ids, point.kind, point.subject, point.how) or any(fnmatch.fnmatchcase(id, text) for id in ids)
