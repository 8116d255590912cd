"""Crash points: the moments of a run at which its process can be killed, each with a stable name.

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
from typing import Any, Self

__all__ = ["OPENING", "Kind", "Occurrences", "Plan", "Point", "choose", "enumerate_points", "points_of"]


class Kind(StrEnum):
    """What the process is doing when it dies."""

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

    ROUTED = "routed"
    """A branch has chosen its route, which has not been started."""

    JOINED = "joined"
    """All members of a fan-out are stored; what follows has not been started."""

    RUN_FINISHED = "run-finished"
    """Everything is stored; `run` has not returned."""


_LABELS = {
    Kind.RUN_STARTED: "run started",
    Kind.BEFORE_OPENING_SAVE: "before the save without outputs",
    Kind.AFTER_OPENING_SAVE: "after the save without outputs",
    Kind.BEFORE: "before {}",
    Kind.DURING: "during {}",
    Kind.AFTER: "after {}, not saved",
    Kind.BEFORE_SAVE: "before the save of {}",
    Kind.AFTER_SAVE: "after the save of {}",
    Kind.ROUTED: "{} routed",
    Kind.JOINED: "{} joined",
    Kind.RUN_FINISHED: "run finished",
}


OPENING = (Kind.BEFORE_OPENING_SAVE, Kind.AFTER_OPENING_SAVE)


@dataclass(frozen=True, slots=True)
class Point:
    """One crash point. `str` gives its stable id, as in `after-save:writer`; `parse` reads it.

    `occurrence` counts from 1 within one life: `before:writer#2` is the second attempt of `writer`.
    """

    kind: Kind
    subject: str = ""
    occurrence: int = 1

    def __str__(self) -> str:
        number = f"#{self.occurrence}" if self.occurrence > 1 else ""
        return f"{self.kind}:{self.subject}{number}" if self.subject else f"{self.kind}{number}"

    @property
    def label(self) -> str:
        """The point in words, for a table."""
        number = f" (time {self.occurrence})" if self.occurrence > 1 else ""
        return _LABELS[self.kind].format(self.subject) + number

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an id. Raises `ValueError` naming the kinds if it is none."""
        kind, _, rest = text.partition(":")
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
        return cls(found, subject, number)


def _split_number(text: str) -> tuple[str, int]:
    match = re.fullmatch(r"(.*)#([1-9][0-9]*)", text)
    return (match[1], int(match[2])) if match else (text, 1)


def _example(kind: Kind) -> str:
    return f"{kind}:NAME" if "{}" in _LABELS[kind] else str(kind)


Plan = tuple[Point, ...]
"""Where a run is killed: the crash point of its first life, of its second, …; the last one is what the plan is for."""


_BY_EVENT = {
    "run_started": (Kind.RUN_STARTED, ""),
    "node_started": (Kind.BEFORE, "node"),
    "call_start": (Kind.DURING, "node"),
    "node_returned": (Kind.AFTER, "node"),
    "branch_routed": (Kind.ROUTED, "branch"),
    "group_joined": (Kind.JOINED, "group"),
    "run_finished": (Kind.RUN_FINISHED, ""),
}


def points_of(event: str, fields: Mapping[str, Any]) -> list[Point]:
    """Return the points that something seen stands for, each without its occurrence.

    `event` is an event of the executor, or `call_start`, `save_start` or `save_end` as in the ledger.
    """
    if event in _BY_EVENT:
        kind, subject = _BY_EVENT[event]
        return [Point(kind, fields[subject] if subject else "")]
    if event == "save_start":
        return [Point(Kind.BEFORE_SAVE, node) for node in fields["new"]] or [Point(Kind.BEFORE_OPENING_SAVE)]
    if event == "save_end" and "error" not in fields:
        return [Point(Kind.AFTER_SAVE, node) for node in fields["new"]] or [Point(Kind.AFTER_OPENING_SAVE)]
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
    return [point for point in points if point.occurrence == 1 or point.kind not in OPENING]


def choose(plans: Sequence[Plan], at: Sequence[str] | None, budget: int | None) -> list[Plan]:
    """Return the plans to try: those whose last point `at` names, at most `budget` of them, spread evenly.

    An entry of `at` is an id (`after-save:writer`), a pattern (`*-save:*`), a kind (`during`) or a node (`writer`).
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
    return text in (str(point), point.kind, point.subject) or fnmatch.fnmatchcase(str(point), text)
