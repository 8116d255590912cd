"""A home-made loop: three plain functions, a JSON file that keeps what they returned, and nothing of n00dles in it.

Run it twice, the second time it calls nothing; then kill it at each moment at which that could make a difference:

    python docs/examples/home_made_loop.py
    n00dles-testing explore docs/examples/home_made_loop.py:subject --input topic="sea otters"
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from n00dles_testing import PlainFunctions


def research(topic: str) -> list[str]:
    """Find facts, which costs money."""
    return [f"{topic} exist", f"many like {topic}"]


def write(facts: list[str]) -> dict[str, Any]:
    """Write an article, which costs more."""
    text = ". ".join(facts)
    return {"text": text, "words": len(text.split())}


def publish(article: dict[str, Any]) -> str:
    """Put it online, which must not happen twice."""
    return f"published {article['words']} words"


def load(folder: Path) -> dict[str, Any]:
    """Return what is stored: the output of each function that has returned."""
    file = folder / "state.json"
    return json.loads(file.read_text()) if file.exists() else {}


def save(folder: Path, state: dict[str, Any]) -> None:
    """Store it, whole or not at all: a file that is written in place is empty for a moment."""
    written = folder / "state.json.new"
    written.write_text(json.dumps(state))
    os.replace(written, folder / "state.json")


def run(topic: str, folder: Path) -> str:
    """Call what has not been called yet, and save after each call, before the next one."""
    state = load(folder)
    value: Any = topic
    for step in (research, write, publish):
        if step.__name__ not in state:
            state[step.__name__] = step(value)
            save(folder, state)
        value = state[step.__name__]
    return str(value)


subject = PlainFunctions(run, nodes=[research, write, publish], stored=lambda folder: list(load(folder)))


if __name__ == "__main__":
    print(run("sea otters", Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
