"""Texts for a JSON schema: by format, by pattern, by length."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from .dice import Dice
from .patterns import matching

__all__ = ["text"]

_WORDS = (
    *("amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "harbor", "inlet", "jasper", "lagoon", "meadow"),
    *("orchard", "prairie", "quarry", "ridge", "summit", "timber", "upland", "valley", "willow", "zenith"),
)
_LATEST = 365 * 24 * 3600
_DAWN = datetime(2026, 1, 1, tzinfo=UTC)


def text(schema: dict[str, Any], dice: Dice, mark: str) -> str:
    """Return a text that has the format, the pattern or the length that `schema` asks for.

    Raises `SchemaError` if none is found. An unknown format is only a comment, as in JSON schema.
    """
    if "pattern" in schema:
        return matching(schema["pattern"], dice, schema.get("minLength", 0), schema.get("maxLength"))
    make = _FORMATS.get(schema.get("format", ""))
    return (
        make(dice, mark)
        if make is not None
        else _words(dice, mark, schema.get("minLength", 0), schema.get("maxLength"))
    )


def _words(dice: Dice, mark: str, least: int, most: int | None) -> str:
    made = " ".join(dice.choice(_WORDS) for _ in range(dice.between(2, 5))) + f" {mark}"
    if most is not None and len(made) > most:
        made = "".join(f"{dice.below(36**2):x}" for _ in range(most))[:most]  # too short for words: any characters
    while len(made) < least:
        made += f" {dice.choice(_WORDS)}"
        made = made[: max(least, most)] if most is not None else made
    return made


def _moment(dice: Dice) -> datetime:
    return _DAWN + timedelta(seconds=dice.below(_LATEST))


def _uuid(version: int) -> Callable[[Dice, str], str]:
    return lambda dice, mark: str(uuid.UUID(int=dice.below(1 << 128), version=version))


_FORMATS: dict[str, Callable[[Dice, str], str]] = {
    "date-time": lambda dice, mark: _moment(dice).strftime("%Y-%m-%dT%H:%M:%SZ"),
    "date": lambda dice, mark: _moment(dice).strftime("%Y-%m-%d"),
    "time": lambda dice, mark: _moment(dice).strftime("%H:%M:%SZ"),
    "duration": lambda dice, mark: f"P{dice.below(30)}DT{dice.below(24)}H{dice.below(60)}M",
    "uuid": _uuid(4),
    **{f"uuid{version}": _uuid(version) for version in (1, 3, 4, 5)},
    "email": lambda dice, mark: f"{dice.choice(_WORDS)}.{mark}@example.com",
    "name-email": lambda dice, mark: f"{dice.choice(_WORDS).title()} <{mark}@example.com>",
    "hostname": lambda dice, mark: f"{dice.choice(_WORDS)}-{mark}.example.com",
    "uri": lambda dice, mark: f"https://example.com/{dice.choice(_WORDS)}/{mark}",
    "ipv4": lambda dice, mark: f"192.0.2.{dice.below(256)}",
    "ipv6": lambda dice, mark: f"2001:db8::{dice.between(1, 0xFFFF):x}",
    "ipvanyaddress": lambda dice, mark: f"192.0.2.{dice.below(256)}",
    "ipvanyinterface": lambda dice, mark: f"192.0.2.{dice.below(256)}/24",
    "ipvanynetwork": lambda dice, mark: "192.0.2.0/24",
    "ipv4network": lambda dice, mark: "192.0.2.0/24",
    "ipv4interface": lambda dice, mark: f"192.0.2.{dice.below(256)}/24",
    "ipv6network": lambda dice, mark: "2001:db8::/32",
    "ipv6interface": lambda dice, mark: f"2001:db8::{dice.between(1, 0xFFFF):x}/32",
    "regex": lambda dice, mark: f"^{dice.choice(_WORDS)}$",
    "json-string": lambda dice, mark: json.dumps({dice.choice(_WORDS): mark}),
    "base64": lambda dice, mark: base64.b64encode(mark.encode()).decode(),
    "base64url": lambda dice, mark: base64.urlsafe_b64encode(mark.encode()).decode(),
}
