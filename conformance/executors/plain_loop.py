"""A plain loop: functions, and a JSON file that keeps what they returned. It needs no package, and shows the measure.

What a page of code can do: each output is in the file before the next call, whole or not at all.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from conformance.executors import nodes
from n00dles_testing import PlainFunctions

PACKAGES = ()


def run(topic: str, folder: Path) -> str:
    """Call what has not been called yet."""
    state = load(folder)

    def once(function: Any, *arguments: Any) -> Any:
        if function.__name__ not in state:
            state[function.__name__] = function(*arguments)
            save(folder, state)
        return state[function.__name__]

    points = once(nodes.outline, topic)
    article = once(nodes.article, once(nodes.facts, points), once(nodes.images, points))
    address = once(nodes.online if article["kind"] == "online" else nodes.printed, article)
    return str(once(nodes.archive, address))


def load(folder: Path) -> dict[str, Any]:
    """Return what is stored."""
    file = folder / "state.json"
    return dict(json.loads(file.read_text("utf-8"))) if file.exists() else {}


def save(folder: Path, state: dict[str, Any]) -> None:
    """Put it in the place of what was stored."""
    written = folder / "state.new"
    with open(written, "w", encoding="utf-8") as file:
        json.dump(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(written, folder / "state.json")


subject = PlainFunctions(
    run,
    nodes.ALL,
    needs=nodes.CHAIN,
    routes=nodes.ROUTES,
    stored=lambda folder: list(load(folder)),
    name="A plain loop",
)
