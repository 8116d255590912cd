"""Stores that break S03: a value is kept exactly, or refused by an error that names it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, ClassVar

from .correct import AppendOnlyLog, JSONFiles

__all__ = ["ReadsLargeNumbersAsDoubles", "RefusesWithoutSayingWhat", "SavesAnythingAsText", "WritesTimesInUTC"]

_BITS = 64


class SavesAnythingAsText(JSONFiles):
    """`json.dumps(record, default=str)`: a set, a time or a secret is acknowledged, and comes back as a text.

    A resumed node then iterates over "{1, 2}", or signs in with asterisks (pydantic/pydantic-core #851).
    """

    breaks: ClassVar[str | None] = "S03"
    also_breaks: ClassVar[tuple[str, ...]] = ("S04",)

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Make everything a text that JSON has no form for."""
        super().write(run_id, json.loads(json.dumps(record, default=str)))


class WritesTimesInUTC(JSONFiles):
    """Keeps every text that looks like a time as its database does, in UTC: a text comes back as another one."""

    breaks: ClassVar[str | None] = "S03"
    also_breaks: ClassVar[tuple[str, ...]] = ("S04",)

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the record with its times in UTC."""
        outputs = record["completed"].items()
        super().write(run_id, {**record, "completed": {node: _in_utc(output) for node, output in outputs}})


class ReadsLargeNumbersAsDoubles(AppendOnlyLog):
    """Answers from memory; reads its file with a parser that has 64 bits for a whole number, and makes others doubles.

    As serde_json and simdjson do: the number is another one, but only after a restart.
    """

    breaks: ClassVar[str | None] = "S03"

    def replay(self, text: str) -> None:
        """Read the file as such a parser does."""
        for line in text.splitlines(keepends=True):
            if line.endswith("\n"):
                self.apply(*json.loads(line, parse_int=_number))


class RefusesWithoutSayingWhat(JSONFiles):
    """Refuses whole numbers that do not fit 64 bits, by the words of its driver: of which node, nobody knows."""

    breaks: ClassVar[str | None] = "S03"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Raise what a driver for BSON raises."""
        if any(type(part) is int and part.bit_length() > _BITS for part in _parts(record)):
            raise OverflowError("MongoDB can only handle up to 8-byte ints")
        super().write(run_id, record)


def _number(text: str) -> int | float:
    number = int(text)
    if number.bit_length() <= _BITS:
        return number
    try:
        return float(number)
    except OverflowError:
        return 0.0


def _in_utc(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _in_utc(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_in_utc(part) for part in value]
    try:
        return datetime.fromisoformat(value).astimezone(UTC).isoformat() if isinstance(value, str) else value
    except (ValueError, OverflowError):
        return value


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        yield value
        return
    for part in value:
        yield from _parts(part)
