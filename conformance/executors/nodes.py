"""The functions of the small pipeline that each framework is given: the same for all, and plain Python.

    outline -> facts, images (side by side, where a framework can) -> article -> online or printed -> archive

A framework calls them from nodes, steps or actions of its own. They return JSON, so that each framework can keep what
they return as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["ALL", "CHAIN", "FAN_OUT", "INPUTS", "ROUTES"]

INPUTS = {"topic": "sea otters"}
ROUTES = {"publishing": ["online", "printed"]}
"""Of these a run takes one: with these inputs, the first."""


def outline(topic: str) -> list[str]:
    """Plan an article."""
    points = [f"what {topic} are"]
    points.append(f"where {topic} live")
    return points


def facts(outline: list[str]) -> list[str]:
    """Find what is known, for each point."""
    found = [f"{point}: known" for point in outline]
    found.append("nothing else")
    return found


def images(outline: list[str]) -> list[str]:
    """Find a picture for each point."""
    found = [f"{number}.png" for number in range(len(outline))]
    found.append("cover.png")
    return found


def article(facts: list[str], images: list[str]) -> dict[str, object]:
    """Write it, and say where it belongs."""
    text = "; ".join(facts)
    kind = "online" if images else "printed"
    return {"text": text, "images": images, "kind": kind}


def online(article: dict[str, object]) -> str:
    """Put it online, which must not happen twice."""
    words = len(str(article["text"]).split())
    return f"/articles/{words}-words"


def printed(article: dict[str, object]) -> str:
    """Have it printed."""
    words = len(str(article["text"]).split())
    return f"page {words}"


def archive(address: str) -> str:
    """Note where it is."""
    parts = address.split()
    return f"published at {'-'.join(parts)}"


ALL: list[Callable[..., Any]] = [outline, facts, images, article, online, printed, archive]
CHAIN = {
    "outline": [],
    "facts": ["outline"],
    "images": ["facts"],
    "article": ["images"],
    "online": ["article"],
    "printed": ["article"],
    "archive": ["online", "printed"],
}
"""What each of them needs, one after the other."""
FAN_OUT = {**CHAIN, "images": ["outline"], "article": ["facts", "images"]}
"""The same with two that run side by side."""
