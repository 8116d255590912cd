"""What another process does with one open store while its server or its connection is disturbed.

The store stays open from one procedure to the next: whether the same object works again is what is asked.
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

from .child import still_alive
from .player import Player, Step
from .records import Record
from .scenario import describe
from .target import StoreTarget

__all__ = ["is_typed", "save_until", "use"]

_ACCIDENTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    NotImplementedError,
    RecursionError,
    SyntaxError,
    TypeError,
    UnicodeError,
)
"""What a program raises that does not know what has happened to it."""
_BETWEEN_SAVES = 0.002
_AFTER_AN_ERROR = 0.02
_FEW = 20

_players: dict[str | None, Player] = {}


def is_typed(error: BaseException) -> bool:
    """Whether an error was meant: of the store, of its client, or of the system, and no accident of a program."""
    return isinstance(error, Exception) and not isinstance(error, _ACCIDENTS)


async def use(target: StoreTarget, location: str | None, *, step: Step, through: str | None = None) -> dict[str, Any]:
    """Do a step of `Player` on the store of this process, which is opened at `through`, or at the location.

    Returns what came of it, with the `seconds` that it took; an error is `raised`, and `typed` or not.
    """
    began = time.monotonic()
    came = await _outcome(_player(target, through or location), step)
    said = came.get("raised")
    told = f"raised {said}" if said else str(Record.from_dict(came["record"])) if "record" in came else "acknowledged"
    return {**came, "told": told, "seconds": time.monotonic() - began}


async def save_until(
    target: StoreTarget, location: str | None, *, run_id: str, started: str, sign: str, more: int, seconds: float
) -> dict[str, Any]:
    """Save one node after the other, until the file `sign` is there and `more` saves were acknowledged since.

    With the first acknowledged save it makes the file `started`. It gives up `seconds` after the sign. Returns `calls`,
    each with its node (None for a load), when it began and ended, and what it `raised`, if it did, `typed` or not; and
    `lost`, the nodes that a load lacked.
    """
    player, calls, lost = _player(target, location), list[dict[str, Any]](), list[str]()
    load: Step = {"do": "load_or_create", "run": run_id, "inputs": {"topic": "cats"}}
    signed_at, number, is_known = 0.0, 0, False
    while True:
        if not signed_at and os.access(sign, os.F_OK):
            signed_at = time.monotonic()
        since = [
            call for call in calls if signed_at and call["node"] and "raised" not in call and call["began"] > signed_at
        ]
        if len(since) >= more or (signed_at and time.monotonic() > signed_at + seconds):
            return {"told": _told(calls), "calls": calls, "lost": lost}
        number += is_known
        node = f"node{number}" if is_known else None
        step: Step = {"do": "save", "run": run_id, "outputs": {node: f"output {number}"}} if node else load
        began = time.monotonic()
        came = await _outcome(player, step)
        still_alive()
        calls.append({"node": node, "began": began, "ended": time.monotonic(), **_error(came)})
        is_known = "raised" not in came
        if is_known and node is not None and len(calls) <= _FEW:
            os.close(os.open(started, os.O_CREAT | os.O_WRONLY))
        if "record" in came:
            lost += sorted(_acknowledged(calls) - set(came["record"]["completed"]))
        await asyncio.sleep(_BETWEEN_SAVES if is_known else _AFTER_AN_ERROR)


def _player(target: StoreTarget, location: str | None) -> Player:
    if location not in _players:
        _players[location] = Player(target, location)
    return _players[location]


async def _outcome(player: Player, step: Step) -> dict[str, Any]:
    try:
        return await player.do(step)
    except Exception as error:
        return {"raised": describe(error), "typed": is_typed(error)}


def _error(came: dict[str, Any]) -> dict[str, Any]:
    return {name: came[name] for name in ("raised", "typed") if name in came}


def _acknowledged(calls: list[dict[str, Any]]) -> set[str]:
    return {call["node"] for call in calls if call["node"] and "raised" not in call}


def _told(calls: list[dict[str, Any]]) -> str:
    raised = [call for call in calls if "raised" in call]
    return f"{len(_acknowledged(calls))} saves acknowledged, {len(raised)} calls raised"
