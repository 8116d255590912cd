"""Programs for another interpreter: they need the standard library alone, and are read there by their path."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def research(topic: str) -> tuple[str, str]:
    """Find facts."""
    return topic, "a fact"


def write(facts: Any) -> dict[str, Any]:
    """Write them up."""
    return {"text": " and ".join(facts)}


def publish(article: dict[str, Any]) -> str:
    """Give it an address."""
    return f"/articles/{len(article['text'])}"


def run(topic: str, folder: str, is_right: bool = True) -> str:
    """Save each output before the next call, whole or, if it is not right, into the file itself."""
    file = Path(folder, "state.json")
    state = json.loads(file.read_text()) if file.exists() else {}
    value: Any = topic
    for step in (research, write, publish):
        if step.__name__ not in state:
            state[step.__name__] = step(value)
            if is_right:
                file.with_suffix(".new").write_text(json.dumps(state))
                os.replace(file.with_suffix(".new"), file)
                state = json.loads(file.read_text())
            else:
                file.write_text(json.dumps(state))
        value = state[step.__name__]
    return str(value)


async def run_async(topic: str, folder: str) -> str:
    """Do the same in an event loop."""
    return run(topic, folder)


def run_failing(topic: str, folder: str) -> str:
    """Call one function, and fail."""
    raise LookupError(f"nothing is known of {research(topic)[0]}")


def run_ending(topic: str, folder: str) -> None:
    """End the process."""
    os._exit(3)
