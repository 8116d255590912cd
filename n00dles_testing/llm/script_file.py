"""A script as a file: a JSON list of replies, each a text, or an object with the fields of `Reply` that it needs.

`[{"node": "researcher", "text": "Facts."}, {"node": "writer", "fault": {"fault": "RateLimited", "retry_after": 2}}]`
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .calls import Reply

__all__ = ["ScriptFileError", "load_script", "plain_entry", "write_script"]

_DEFAULTS = Reply().to_dict()
_SAYS = dict.fromkeys(("text", "data", "tool_calls", "fault", "status"))


class ScriptFileError(ValueError):
    """A file is no script; the message names the file and the place in it."""


def load_script(file: str | Path) -> list[Reply]:
    """Return the replies of a file, in order. Raises `ScriptFileError` for what is no script."""
    try:
        entries = json.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise ScriptFileError(f"the script {file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ScriptFileError(f"the script {file} is not JSON: {error}") from error
    if not isinstance(entries, list):
        raise ScriptFileError(f"the script {file} is no list of replies")
    return [_read(entry, f"reply {number} of {file}") for number, entry in enumerate(entries, 1)]


def write_script(file: str | Path, entries: Iterable[dict[str, Any]]) -> None:
    """Write entries, as `plain_entry` gives them, a line each."""
    lines = ",\n  ".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    Path(file).write_text(f"[\n  {lines}\n]\n" if lines else "[]\n", encoding="utf-8")


def plain_entry(reply: Reply) -> dict[str, Any]:
    """Return a reply as plain JSON, without the fields that say nothing."""
    entry = {name: value for name, value in reply.to_dict().items() if value != _DEFAULTS[name]}
    return entry if entry.keys() & _SAYS.keys() else {**entry, "text": ""}


def _read(entry: Any, place: str) -> Reply:
    if isinstance(entry, str):
        return Reply(text=entry)
    if not isinstance(entry, dict):
        raise ScriptFileError(f"{place} is neither an object nor a text: {entry!r}")
    if not entry.keys() & _SAYS.keys():
        raise ScriptFileError(f"{place} answers nothing; give it one of {', '.join(_SAYS)}")
    try:
        return Reply.from_dict(entry)
    except ValueError as error:
        raise ScriptFileError(f"{place}: {error}") from error
