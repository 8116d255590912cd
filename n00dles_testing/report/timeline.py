"""A story as a time line: its lines, read again as calls with a lane for each process and a mark for each outcome.

A story is text, made by the journal of a scenario. Reading it decides nothing: what is not recognized stays a note, and
whatever is drawn, the text stands beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

__all__ = ["HERE", "MOST_LANES", "Event", "Lane", "Mark", "Timeline", "read_story"]

HERE = "here"
"""The lane of the process in which the check runs."""

MOST_LANES = 6
"""More than these do not fit on a phone: the processes behind share the last lane."""

_LANE = re.compile(
    r"((?:process|worker|thread|task|loop|child|parent) ?[\w.-]{0,20}"
    r"|(?!call )\w[\w -]{0,30}(?=: (?:open|load_or_create|load|save|delete|close|fork)\()): (.+)",
    re.DOTALL,
)
_DETAIL = re.compile(
    r"(allowed|came|why|raised|printed|stored|on disk|hangs at|[a-z][a-z ]{0,10}(?= {2}))  *(.*)", re.DOTALL
)
_CALL = re.compile(r"((?:call \d{1,9}: )?(?:open|load_or_create|load|save|delete|close))(\(.*)", re.DOTALL)
_UNANSWERED = re.compile(r"(open|load_or_create|load|save|delete|close)\(.*(\)|\}|characters\))", re.DOTALL)
_OUTCOMES = re.compile(
    r" → (acknowledged.*|open|closed|done|cancelled|has not ended|unreadable|raised \w+.*|refused.*|the process .*"
    r"|the power fails.*|inputs \{.*)",
    re.DOTALL,
)
_DEATH = re.compile(r"SIGKILL|was killed|killed itself")


class Mark(StrEnum):
    """How a line of a story ended. The value is the word that is shown."""

    ACKNOWLEDGED = "acknowledged"
    GAVE = "gave"
    DONE = "done"
    REFUSED = "refused"
    RAISED = "raised"
    CANCELLED = "cancelled"
    KILLED = "killed"
    NO_ANSWER = "no answer"
    NOTE = "note"
    LEFT_OUT = "left out"

    @property
    def symbol(self) -> str:
        """The character that stands for it in the drawing."""
        return _SYMBOLS[self]


_SYMBOLS = {
    Mark.ACKNOWLEDGED: "✓",
    Mark.GAVE: "←",
    Mark.DONE: "○",
    Mark.REFUSED: "⊘",
    Mark.RAISED: "!",
    Mark.CANCELLED: "⊘",
    Mark.KILLED: "✕",
    Mark.NO_ANSWER: "…",
    Mark.NOTE: "·",
    Mark.LEFT_OUT: "⋮",
}


@dataclass(frozen=True, slots=True)
class Event:
    """One line: the call (its name and what it was called with) or a note, how it ended, and in which lane.

    `times` counts equal lines in a row, which are drawn once.
    """

    lane: int
    name: str
    text: str
    mark: Mark
    outcome: str = ""
    times: int = 1


@dataclass(frozen=True, slots=True)
class Lane:
    """A process, and its first and last event: between them it is drawn as a line."""

    name: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """A scenario: its title, the processes, what happened in order, and the labelled lines behind it."""

    title: str
    lanes: tuple[Lane, ...]
    events: tuple[Event, ...]
    details: tuple[tuple[str, str], ...]

    def detail(self, label: str) -> str | None:
        """Return the text of the first labelled line of this kind."""
        return next((text for each, text in self.details if each == label), None)


def read_story(story: Sequence[str]) -> Timeline:
    """Read the lines of a story. Never fails: a line that says nothing known is a note."""
    title, events, details, names = "", list[Event](), list[tuple[str, str]](), list[str]()
    for line in story:
        if line.startswith("scenario ") and not title and not events:
            title = line.removeprefix("scenario ")
        elif found := _DETAIL.fullmatch(line):
            details.append((found[1], found[2]))
        else:
            _add(events, _event(line, names))
    return Timeline(title, _lanes(events, names), tuple(events), tuple(details))


def _event(line: str, names: list[str]) -> Event:
    in_lane = _LANE.fullmatch(line)
    name, text = (in_lane[1], in_lane[2]) if in_lane else (HERE, line)
    if line.startswith("… ") and line.endswith(" …"):
        return Event(_lane(names[-1] if names else HERE, names), "", line.strip("… "), Mark.LEFT_OUT)
    lane = _lane(name, names)
    text, outcome = _parted(text)
    call = _CALL.fullmatch(text)
    if outcome is None:
        mark = _mark_of_a_line(text)
        return Event(lane, *((call[1], call[2]) if call and mark is Mark.NO_ANSWER else ("", text)), mark)
    return Event(lane, *((call[1], call[2]) if call else ("", text)), _mark_of(outcome), outcome)


def _lane(name: str, names: list[str]) -> int:
    if name not in names:
        names.append(name)
    return min(names.index(name), MOST_LANES - 1)


def _parted(text: str) -> tuple[str, str | None]:
    """Part a call from its outcome. What it was called with may hold an arrow, too: known outcomes are looked for."""
    found = list(_OUTCOMES.finditer(text))
    if found:
        return text[: found[0].start()], found[0][1]
    call, arrow, outcome = text.rpartition(" → ")
    return (call, outcome) if arrow else (text, None)


def _mark_of(outcome: str) -> Mark:
    starts = {
        "acknowledged": Mark.ACKNOWLEDGED,
        "refused": Mark.REFUSED,
        "raised": Mark.RAISED,
        "unreadable": Mark.RAISED,
        "the process": Mark.KILLED,
        "open": Mark.DONE,
        "closed": Mark.DONE,
        "done": Mark.DONE,
        "cancelled": Mark.CANCELLED,
        "has not ended": Mark.NO_ANSWER,
        "the power fails": Mark.NO_ANSWER,
    }
    return next((mark for start, mark in starts.items() if outcome.startswith(start)), Mark.GAVE)


def _mark_of_a_line(text: str) -> Mark:
    if _DEATH.search(text):
        return Mark.KILLED
    return Mark.NO_ANSWER if _UNANSWERED.fullmatch(text) else Mark.NOTE


def _add(events: list[Event], event: Event) -> None:
    if events and replace(events[-1], times=1) == event:
        events[-1] = replace(event, times=events[-1].times + 1)
    else:
        events.append(event)


def _lanes(events: Iterable[Event], names: Sequence[str]) -> tuple[Lane, ...]:
    spans: dict[int, list[int]] = {}
    for number, event in enumerate(events):
        spans.setdefault(event.lane, []).append(number)
    shared = len(names) > MOST_LANES
    return tuple(
        Lane(f"{names[lane]} and others" if shared and lane == MOST_LANES - 1 else names[lane], at[0], at[-1])
        for lane, at in sorted(spans.items())
    )
