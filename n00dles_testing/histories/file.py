"""A history as a file: JSON lines, a head with a format version, then a call a line. Reading it runs nothing."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any, get_args

from .calls import Call, History, Operation, Outcome

__all__ = ["FORMAT", "FORMAT_VERSION", "DamagedHistoryError", "call_of", "form_of", "read_history", "write_history"]

FORMAT = "n00dles-testing-history"
FORMAT_VERSION = 1
"""Rises when a field changes its meaning or goes; new fields may come at any time."""

_FIELDS = tuple(Call.__dataclass_fields__)
_TEXTS = ("token", "parent", "inputs", "incarnation", "executor", "error")


class DamagedHistoryError(ValueError):
    """A file is no history, or not all of one, or of a later release. Nothing was judged."""


def write_history(path: Path, history: History) -> None:
    """Write a history, replacing the file at `path` in one step.

    Raises `OSError`; an older file is then still there.
    """
    lines = "".join(json.dumps(form_of(call)) + "\n" for call in history.calls)
    head = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "calls": len(history.calls),
        "sha256": _digest(lines),
        "starts_empty": history.starts_empty,
        "about": history.about,
    }
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(json.dumps(head) + "\n" + lines)
        os.chmod(temporary, 0o644)  # mkstemp makes files for their owner alone
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def read_history(path: Path) -> History:
    """Read what `write_history` wrote. Raises `DamagedHistoryError`, and `OSError` if the file cannot be read.

    A history written by hand may leave the `sha256` of its calls out.
    """
    try:
        first, _, rest = path.read_bytes().decode("utf-8").partition("\n")
    except UnicodeDecodeError as error:
        raise DamagedHistoryError(f"{path} is no text, so no history: {error}.") from None
    head = _object(path, 1, first)
    if head.get("format") != FORMAT:
        raise DamagedHistoryError(f"{path} is no history: its first line does not say format {FORMAT!r}.")
    if head.get("version") != FORMAT_VERSION:
        raise DamagedHistoryError(
            f"{path} is a history of format version {head.get('version')!r}, and this release reads {FORMAT_VERSION}. "
            "Use the release that wrote it, or record it again."
        )
    if not isinstance(head.get("starts_empty"), bool) or not isinstance(head.get("about"), dict):
        raise DamagedHistoryError(f"{path}: the first line lacks starts_empty or about.")
    lines = rest.split("\n")
    if lines.pop() != "" or len(lines) != head.get("calls"):
        raise DamagedHistoryError(
            f"{path} says {head.get('calls')!r} calls and holds {len(lines)} whole lines: its end is missing, or "
            "something was added. Record it again."
        )
    if head.get("sha256") not in (None, _digest(rest)):
        raise DamagedHistoryError(f"{path} was changed after it was written: its calls do not have the digest it says.")
    calls = tuple(call_of(path, number, line) for number, line in enumerate(lines, start=2))
    return History(calls, head["starts_empty"], head["about"])


def _digest(lines: str) -> str:
    return hashlib.sha256(lines.encode()).hexdigest()


def form_of(call: Call) -> dict[str, Any]:
    """Return a call in plain JSON types, without what it does not know."""
    values = ((name, getattr(call, name)) for name in _FIELDS)
    return {name: value for name, value in values if value is not None}


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DamagedHistoryError(f"{path}, line {number} is no JSON: {error}.") from None
    if not isinstance(found, dict):
        raise DamagedHistoryError(f"{path}, line {number} is no JSON object.")
    return found


def call_of(path: Path, number: int, line: str) -> Call:
    """Read the call in a line of a file. Raises `DamagedHistoryError`."""
    form = _object(path, number, line)
    if problem := _problem(form):
        raise DamagedHistoryError(f"{path}, line {number} is no call: {problem}.")
    known: dict[str, Any] = {name: form.get(name) for name in _FIELDS}
    if known["outputs"] is not None:
        known["outputs"] = tuple(known["outputs"])
    return Call(**known)


def _problem(form: dict[str, Any]) -> str | None:  # noqa: PLR0911 - one return a kind of damage
    """Say what is wrong with the fields of a call, or return None."""
    get = form.get
    if not isinstance(get("client"), str) or not isinstance(get("run_id"), str):
        return "its client or its run_id is no text"
    if get("operation") not in get_args(Operation) or get("outcome") not in get_args(Outcome):
        return f"its operation is {get('operation')!r} and its outcome {get('outcome')!r}"
    ends = [get(name) for name in ("returned", "woken") if get(name) is not None]
    if not all(map(_is_int, (get("invoked"), *ends))):
        return "its times are no whole numbers of nanoseconds"
    if (get("returned") is None) != (get("outcome") == "unknown"):
        return "a call has a time of return if and only if its outcome is known"
    if any(end < form["invoked"] for end in ends):
        return "it returned, or went on, before it was invoked"
    for name in _TEXTS:
        if not isinstance(get(name), str | None):
            return f"its {name} is no text"
    for name in ("expected", "revision"):
        if get(name) is not None and not (_is_int(get(name)) and form[name] >= 0):
            return f"its {name} is no revision"
    if not isinstance(get("created"), bool | None):
        return "its created is neither true nor false"
    outputs = get("outputs")
    if outputs is not None and not (isinstance(outputs, list) and all(isinstance(node, str) for node in outputs)):
        return "its outputs are no list of nodes"
    if get("operation") == "save" and get("token") is None:
        return "it is a save without a token"
    return None


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
