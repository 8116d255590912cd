"""A scenario told in a few lines: what each life did, how it died, and what it left on disk."""

from __future__ import annotations

from typing import Any

from .history import History, Life
from .points import Point

__all__ = ["tell"]


def tell(history: History, why: str = "") -> tuple[str, ...]:
    """Return the story, one line a life, one for what was on disk between two, and the reason if there is one."""
    lines: list[str] = []
    completed: set[str] = set()
    for life in history.lives:
        if life.disk is not None and not life.again:
            lines.append(f"{'on disk':<9}{_disk(life)}")
        name = "again" if life.again else f"life {life.number}"
        lines.append(f"{name:<9}{_deeds(life, completed)}")
        completed |= {node for save in life.saves if save.acknowledged for node in save.nodes} | set(life.stored)
    if why:
        lines.append(f"{'why':<9}{why}")
    return tuple(lines)


def _disk(life: Life) -> str:
    disk = life.disk or {}
    if "error" in disk:
        return f"unreadable: {disk['error']}"
    if not disk.get("exists"):
        return "no record of the run"
    if not life.knows_disk:
        return "not known"
    return ", ".join(life.stored) or "the run, and no output"


def _deeds(life: Life, completed: set[str]) -> str:
    deeds: list[tuple[int, str]] = []
    for call in life.calls:
        again = " AGAIN" if call.node in completed else ""
        mark = "…" if call.ended is None else f"failed ({call.error})" if call.error else "✓"
        deeds.append((call.began, f"{call.node}{again} {mark}"))
    for save in life.saves:
        if save.acknowledged and save.new and not save.presumed:
            # In a chain it is plain what was saved; where calls overlap it is not.
            begun = [call.node for call in life.calls if call.began < (save.ended or 0)]
            named = "" if save.new == begun[-1:] else f" {', '.join(save.new)}"
            deeds.append((save.ended or 0, f"saved{named}"))
        elif save.error:
            deeds.append((save.began, f"save failed ({save.error})"))
    words = [text for _, text in sorted(deeds)] or ["called nothing"]
    return "  ".join([*words, _end(life)])


def _end(life: Life) -> str:
    end = life.end
    if end is not None and end.timed_out:
        return f"✗ ended after {end.seconds:.0f} s without a sign"
    if end is not None and end.was_killed and life.at_point is not None:
        kill = "simulated death" if end.simulated else "SIGKILL"
        where = f" ({life.at_point['where']})" if life.at_point["where"] else ""
        return f"✗ {kill} {Point.parse(life.at_point['point']).label}{where}"
    if life.outcomes:
        outcome = life.outcomes[-1]
        if life.at_point is not None:
            return f"✗ {_disturbed(life)}: {_outcome(outcome)}{_left(life)}"
        return _outcome(outcome)
    if end is not None and end.signal is not None:
        return f"✗ died by signal {end.signal}"
    return f"ended with exit code {end.exit_code}" if end is not None else "no end recorded"


def _outcome(outcome: dict[str, Any]) -> str:
    if outcome["ok"]:
        return "finished"
    return f"raised {outcome['error']}" + (f": {outcome['message']}" if outcome["message"] else "")


def _disturbed(life: Life) -> str:
    at_point = life.at_point or {}
    where = f" ({at_point['where']})" if at_point["where"] else ""
    return f"{Point.parse(at_point['point']).label}{where}"


def _left(life: Life) -> str:
    """Name what was still there as the executor had returned."""
    left = life.left or {}
    parts = [
        *(f"task {name}" for name in left.get("tasks", ())),
        *(f"thread {name}" for name in left.get("threads", ())),
        *(f"call of {node}" for node in left.get("calls", ())),
        *([f"{left['saves']} saves"] if left.get("saves") else []),
    ]
    return f"; left running: {', '.join(parts)}" if parts else ""
