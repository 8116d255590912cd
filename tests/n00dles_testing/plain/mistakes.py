"""Home-made loops with one typical mistake each, and the clauses that catch it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.n00dles_testing.plain.loops import NODES, load, publish, research, save, write


def saves_at_the_end(topic: str, folder: Path) -> Any:
    state = load(folder)
    if "publish" not in state:
        facts = research(topic)
        article = write(facts)
        state = {"research": facts, "write": article, "publish": publish(article)}
        save(folder, state)
    return state["publish"]


def saves_before_the_call(topic: str, folder: Path) -> Any:
    """Mark a function as done, and then call it."""
    state, value = load(folder), topic
    for step in NODES:
        if step.__name__ not in state:
            save(folder, {**state, step.__name__: None})
            state[step.__name__] = step(value)
            save(folder, state)
        value = state[step.__name__]
    return value


def saves_one_step_late(topic: str, folder: Path) -> Any:
    """Store an output as the next function has returned."""
    state, value = load(folder), topic
    for step in NODES:
        if step.__name__ not in state:
            output = step(value)
            save(folder, state)
            state[step.__name__] = output
        value = state[step.__name__]
    save(folder, state)
    return value


def saves_text(topic: str, folder: Path) -> Any:
    """Store the text of a value, and go on with the value."""
    state = load(folder)
    value: Any = topic
    for step in NODES:
        if step.__name__ in state:
            value = state[step.__name__]
        else:
            value = step(value)
            state[step.__name__] = str(value)
            save(folder, state)
    return value


@dataclass
class Art:
    """What a function returns, and JSON does not give back."""

    text: str


def draw(topic: str) -> Art:
    return Art(topic)


def frame(art: Any) -> str:
    return str(art["text"] if isinstance(art, dict) else art.text)


def loads_a_dict(topic: str, folder: Path) -> str:
    """Go on with an object in the first life, and with its fields in the next one."""
    state = load(folder)
    if "draw" not in state:
        art: Any = draw(topic)
        save(folder, {"draw": asdict(art)})
    else:
        art = state["draw"]
    return frame(art)


def writes_in_place(topic: str, folder: Path) -> Any:
    state, value = load(folder), topic
    for step in NODES:
        if step.__name__ not in state:
            state[step.__name__] = step(value)
            (folder / "state.json").write_text(json.dumps(state))
        value = state[step.__name__]
    return value


def begins_its_file_in_place(topic: str, folder: Path) -> Any:
    """Write a file with nothing done in it, before anything else."""
    if not (folder / "state.json").exists():
        (folder / "state.json").write_text("{}")
    state, value = load(folder), topic
    for step in NODES:
        if step.__name__ not in state:
            state[step.__name__] = step(value)
            save(folder, state)
        value = state[step.__name__]
    return value


def takes_a_torn_file_for_none(topic: str, folder: Path) -> Any:
    """Begin anew where the file cannot be read."""
    try:
        state = load(folder)
    except ValueError:
        state = {}
    value: Any = topic
    for step in NODES:
        if step.__name__ not in state:
            state[step.__name__] = step(value)
            (folder / "state.json").write_text(json.dumps(state))
        value = state[step.__name__]
    return value


def resumes_one_step_early(topic: str, folder: Path) -> Any:
    """Call the last function that is stored once more, to be on the safe side."""
    state = load(folder)
    if state and "publish" not in state:
        state.pop(list(state)[-1])
    value: Any = topic
    for step in NODES:
        if step.__name__ not in state:
            state[step.__name__] = step(value)
            save(folder, state)
        value = state[step.__name__]
    return value


def forgets_the_result(topic: str, folder: Path) -> Any:
    """Remove the checkpoint as all is done."""
    state, value = load(folder), topic
    for step in NODES:
        if step.__name__ not in state:
            state[step.__name__] = step(value)
            save(folder, state)
        value = state[step.__name__]
    (folder / "state.json").unlink()
    return value


def counts_lives_in_its_output(topic: str, folder: Path) -> Any:
    """Let what the loop returns depend on whether it has died."""
    state, value = load(folder), topic
    resumed = bool(state)
    for step in NODES:
        if step.__name__ not in state:
            state[step.__name__] = step(value)
            save(folder, state)
        value = state[step.__name__]
    return {"url": value, "resumed": resumed}


MISTAKES: dict[Callable[..., Any], tuple[set[str], set[str]]] = {
    saves_at_the_end: ({"E01", "E02"}, {"E02"}),
    saves_before_the_call: ({"E04", "E05"}, {"E04", "E05"}),
    saves_one_step_late: ({"E01", "E02"}, {"E02"}),
    saves_text: ({"E04", "E05"}, {"E04", "E05"}),
    writes_in_place: ({"E04"}, {"E04"}),
    begins_its_file_in_place: ({"E04"}, {"E04"}),
    takes_a_torn_file_for_none: ({"E02"}, {"E02"}),
    resumes_one_step_early: ({"E02"}, {"E02"}),
    forgets_the_result: ({"E17"}, {"E17"}),
    counts_lives_in_its_output: ({"E04", "E17"}, {"E04", "E17"}),
}
"""The clauses that each mistake breaks: where it is known what is stored, and where it is not."""
