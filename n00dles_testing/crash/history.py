"""The ledger of one scenario, read: what was called, saved and found on disk, life by life."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .ledger import Entry
from .points import How, Point
from .scenario import LifeEnd
from .typed import canonical

__all__ = ["Call", "History", "Life", "Said", "Save", "same"]


@dataclass(slots=True)
class Call:
    """One true call of a node. `began` and `ended` are positions in the ledger; `ended` is None for one cut short.

    A body has `arguments`, a model a `request` (prompt, system, and the rest), each as typed JSON. `key` is the
    idempotency key that it could see, None if the executor offers none.
    """

    node: str
    life: int
    began: int
    arguments: dict[str, Any] | None = None
    key: str | None = None
    request: dict[str, Any] | None = None
    ended: int | None = None
    output: Any = None
    error: str | None = None
    lines: int | None = None
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def succeeded(self) -> bool:
        """Whether it returned."""
        return self.ended is not None and self.error is None


@dataclass(slots=True)
class Save:
    """One save as it was handed to the store: `nodes` is all that was complete, `new` what no earlier save had carried.

    `ended` is None if it was cut short. Of a loop that saves by itself no save is seen, but at some moment `nodes` are
    known to be stored: `why` says how, and `presumed` that nobody has looked.
    """

    number: int
    nodes: list[str]
    new: list[str]
    began: int
    ended: int | None = None
    error: str | None = None
    why: str = ""
    presumed: bool = False

    @property
    def acknowledged(self) -> bool:
        """Whether the store returned."""
        return self.ended is not None and self.error is None


@dataclass(frozen=True, slots=True)
class Said:
    """An event of the executor: `position` is its place in the ledger."""

    position: int
    event: str
    fields: dict[str, Any]


@dataclass(slots=True)
class Life:
    """What happened in one process. `disk` is what the store held as it started, None in the first life.

    `how` is what was to be done to it, None if it was to be left alone. `left` is what was still there as a disturbed
    life had ended: `tasks` (names of asyncio tasks alive), `calls` (nodes), `saves` (how many had begun and not ended),
    `threads`, and `delivered`, whether the disturbance got through to the run. `same_process` says that it was lived in
    the process of the life before, with a store that works again. `point_at` and `outcome_at` are the places in the
    ledger of its point and of its first outcome.
    """

    number: int
    again: bool = False
    disk: dict[str, Any] | None = None
    calls: list[Call] = field(default_factory=list)
    saves: list[Save] = field(default_factory=list)
    events: list[Said] = field(default_factory=list)
    outcomes: list[dict[str, Any]] = field(default_factory=list)
    at_point: dict[str, Any] | None = None
    point_at: int | None = None
    outcome_at: int | None = None
    end: LifeEnd | None = None
    how: How | None = None
    left: dict[str, Any] | None = None
    same_process: bool = False

    @property
    def stored(self) -> list[str]:
        """The nodes that the store held as it started."""
        return list((self.disk or {}).get("nodes") or ())

    @property
    def knows_disk(self) -> bool:
        """Whether it could be told what the store held as it started."""
        return bool((self.disk or {}).get("known", True))

    @property
    def starts(self) -> list[tuple[str, int]]:
        """Each node that was started, with its place in the ledger: called, or announced right before a kill."""
        announced = [(said.fields["node"], said.position) for said in self.events if said.event == "node_started"]
        return [*announced, *((call.node, call.began) for call in self.calls)]

    @property
    def was_finished(self) -> bool:
        """Whether the run was already finished as it started."""
        return self.again or (self.disk or {}).get("status") == "finished"

    @property
    def died_as_planned(self) -> bool:
        """Whether it was alive at its crash point, and then died by signal 9."""
        return self.at_point is not None and self.end is not None and self.end.was_killed

    @property
    def was_disturbed(self) -> bool:
        """Whether what was to be done to it has been done: it was killed at its point, or disturbed there otherwise.

        One that was disturbed and did not end has been, all the same.
        """
        if self.how in (None, How.KILL):
            return self.died_as_planned
        hung = self.end is not None and self.end.timed_out
        return self.at_point is not None and (hung or bool(self.left and self.left["delivered"]))


class History:
    """All lives of one scenario."""

    def __init__(self, entries: Sequence[Entry], ends: Sequence[LifeEnd]) -> None:
        self.entries = entries
        by_number: dict[int, Life] = {}
        for position, entry in enumerate(entries):
            life = by_number.setdefault(entry.life, Life(entry.life))
            _take(life, position, entry)
        for end in ends:
            # A process that was to have several lives may have ended before the last of them.
            known = end.life if end.life in by_number else _last_of(end.pid, entries, default=end.life)
            by_number.setdefault(known, Life(known)).end = end
        self.lives = [by_number[number] for number in sorted(by_number)]

    @property
    def working(self) -> list[Life]:
        """The lives that had to bring the run to its end; not the one after it."""
        return [life for life in self.lives if not life.again]

    @property
    def again(self) -> Life | None:
        """The life after the end, if there was one."""
        return next((life for life in self.lives if life.again), None)

    @property
    def calls(self) -> list[Call]:
        """All calls of the working lives, in order."""
        return [call for life in self.working for call in life.calls]

    @property
    def keeps_counts(self) -> bool:
        """Whether the store gave back what nodes have cost; one that keeps no more than it must does not."""
        return all((life.disk or {}).get("counted", True) for life in self.working)

    @property
    def outcome(self) -> dict[str, Any] | None:
        """How the run ended, if it did."""
        outcomes = self.working[-1].outcomes if self.working else []
        return outcomes[-1] if outcomes else None

    def completed_before(self, life: Life) -> dict[str, str]:
        """Return the nodes that are complete as `life` starts, each with how that is known."""
        reasons = dict.fromkeys(life.stored, "it was in the store")
        for earlier in self.lives:
            if earlier.number < life.number:
                for save in earlier.saves:
                    if save.acknowledged:
                        why = save.why or "its save was acknowledged"
                        reasons |= dict.fromkeys(save.nodes, f"{why} in life {earlier.number}")
        return reasons


def _last_of(pid: int, entries: Sequence[Entry], *, default: int) -> int:
    return max((entry.life for entry in entries if entry.pid == pid), default=default)


def _take(life: Life, position: int, entry: Entry) -> None:
    match entry.kind:
        case "life_start":
            life.again = entry["again"]
            life.same_process = entry.get("same_process", False)
            life.how = Point.parse(entry["point"]).how if entry.get("point") else None
        case "disk":
            life.disk = entry.data
        case "call_start" | "llm_request" | "llm_reply" | "call_end":
            _take_call(life, position, entry)
        case "save_start" | "save_end":
            _take_save(life, position, entry)
        case "event":
            life.events.append(Said(position, entry["event"], entry.data))
            if entry["event"] == "known_stored":
                _take_known(life, position, entry)
        case "outcome":
            life.outcomes.append(entry.data)
            life.outcome_at = position if life.outcome_at is None else life.outcome_at
        case "at_point":
            life.at_point, life.point_at = entry.data, position
        case "left":
            life.left = entry.data


def _take_call(life: Life, position: int, entry: Entry) -> None:
    if entry.kind == "call_start":
        arguments, key = entry.get("arguments"), entry.get("key")
        life.calls.append(Call(entry["node"], life.number, position, arguments, key))
        return
    call = next((c for c in reversed(life.calls) if c.node == entry["node"] and c.ended is None), None)
    if call is None:
        return
    if entry.kind == "llm_request":
        call.request = {name: entry[name] for name in ("prompt", "system", "kwargs")}
    elif entry.kind == "llm_reply":
        call.input_tokens, call.output_tokens = entry["input_tokens"], entry["output_tokens"]
    else:
        call.ended, call.output, call.error = position, entry.get("output"), entry.get("error")
        call.lines = entry.get("lines")


def _take_save(life: Life, position: int, entry: Entry) -> None:
    if entry.kind == "save_start":
        life.saves.append(Save(entry["save"], entry["nodes"], entry["new"], position))
        return
    save = next((s for s in reversed(life.saves) if s.number == entry["save"] and s.ended is None), None)
    if save is not None:
        save.nodes, save.new = entry["nodes"], entry["new"]
        save.ended, save.error = position, entry.get("error")


def _take_known(life: Life, position: int, entry: Entry) -> None:
    nodes = entry["nodes"]
    known = {node for save in life.saves for node in save.nodes} | set(life.stored)
    new = [node for node in nodes if node not in known]
    save = Save(len(life.saves) + 1, nodes, new, position, position, why=entry["why"], presumed=entry["presumed"])
    life.saves.append(save)


def same(one: Any, other: Any) -> bool:
    """Whether two typed forms are equal in value and type."""
    return canonical(one) == canonical(other)
