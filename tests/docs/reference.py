"""The reference pages that say what the code already says: they are written from it, by `make docs`.

`python -m tests.docs.reference` writes them; test_reference.py fails if one is out of date.
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from n00dles import errors, events
from tests.docs.clauses_page import clauses_page
from tests.docs.conformance_page import conformance_page
from tests.docs.contract_page import contract_page
from tests.docs.corpus_page import corpus_page

ROOT = Path(__file__).resolve().parents[2]
_WIDTH = "100"

Kind = TypeVar("Kind")

_N00DLES_COMMANDS = [
    *("", "submit", "worker", "runs"),
    *("runs list", "runs show", "runs resume", "runs delete", "runs prune"),
]


def errors_page() -> str:
    """The hierarchy of errors, with their docstrings."""
    lines = ["# Errors", "", _plain(inspect.getdoc(errors)), "", "```text", *_tree(errors.N00dlesError), "```"]
    kinds: list[type[errors.N00dlesError]] = [errors.N00dlesError, *_own_classes(errors, errors.N00dlesError)]
    for kind in kinds:
        lines += ["", f"## {kind.__name__}", "", _plain(inspect.getdoc(kind))]
    return "\n".join([*lines, ""])


def events_page() -> str:
    """The events, in the order in which they are declared."""
    lines = ["# Events", "", _plain(inspect.getdoc(events)), "", _OBSERVER_EXAMPLE]
    lines += ["", "Every event carries `run_id`.", "", "| event | name | fields | meaning |", "|---|---|---|---|"]
    for kind in _own_classes(events, events.Event):
        own = ", ".join(f"`{field.name}`" for field in fields(kind) if field.name != "run_id")
        lines.append(f"| `{kind.__name__}` | `{kind.name}` | {own} | {_row(inspect.getdoc(kind))} |")
    return "\n".join([*lines, "", _ORDER, ""])


def cli_page() -> str:
    """The help of every command."""
    lines = ["# Commands", "", "What the commands say of themselves with `--help`.", "", "## n00dles"]
    for words in _N00DLES_COMMANDS:
        lines += _help_section("n00dles", words)
    lines += ["", "## n00dles-testing"]
    for words in _testing_commands():
        lines += _help_section("n00dles_testing", words)
    return "\n".join([*lines, ""])


PAGES: dict[str, Callable[[], str]] = {
    "docs/reference/errors.md": errors_page,
    "docs/reference/events.md": events_page,
    "docs/reference/cli.md": cli_page,
    "docs/reference/contract.md": contract_page,
    "docs/reference/executor-clauses.md": clauses_page,
    "docs/reference/hostile-values.md": corpus_page,
    "conformance/README.md": conformance_page,
}

_OBSERVER_EXAMPLE = """```python
from n00dles import InMemoryStateStore, agent, pipeline, run
from n00dles.events import Event


@agent
def shout(text: str) -> str:
    return text.upper()


def show(event: Event) -> None:
    print(event.name)


run(pipeline(shout, name="demo"), store=InMemoryStateStore(), observers=[show], text="hello")
```
<!-- output -->
```text
run_started
node_started
node_returned
checkpoint_saving
checkpoint_saved
run_finished
```"""

_ORDER = (
    "Each node is saved before anything that depends on it starts; members of a fan-out that finish while a save is in "
    "flight share the next one. A life that carries a stored run on begins with a save of no outputs, which counts the "
    "life. A failed attempt is saved before the next one."
)


def _plain(docstring: str | None) -> str:
    """Return a docstring as Markdown: its paragraphs on one line each."""
    paragraphs = (docstring or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _row(docstring: str | None) -> str:
    """Return a docstring as a cell of a table: all of it on one line."""
    return " ".join((docstring or "").split())


def _own_classes(module: ModuleType, base: type[Kind]) -> list[type[Kind]]:
    """Return the subclasses of `base` that a module defines, in order."""
    found = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, base)]
    return [kind for kind in found if kind is not base and kind.__module__ == module.__name__]


def _tree(kind: type[Exception], depth: int = 0) -> Iterator[str]:
    yield "  " * depth + kind.__name__
    for child in _own_classes(errors, errors.N00dlesError):
        if kind in child.__bases__:
            yield from _tree(child, depth + 1)


def _testing_commands() -> list[str]:
    import click

    from n00dles_testing.cli import main

    return ["", *(main.commands if isinstance(main, click.Group) else [])]


def _help_section(module: str, words: str) -> list[str]:
    command = f"{module.replace('_', '-')} {words}".strip()
    done = subprocess.run(
        [sys.executable, "-m", module, *words.split(), "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": _WIDTH, "TERMINAL_WIDTH": _WIDTH, "NO_COLOR": "1"},
    )
    return ["", f"### {command}", "", "```text", *(line.rstrip() for line in done.stdout.strip().splitlines()), "```"]


if __name__ == "__main__":
    for name, page in PAGES.items():
        (ROOT / name).write_text(page(), encoding="utf-8")
