"""The inputs of a run, as they are typed on a command line.

`name=text` is text, whatever it looks like; `name:=json` is JSON. Nothing is guessed, so that a topic of `42` or `true`
stays a text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["InputSyntaxError", "read_inputs"]

_INPUT = re.compile(r"(?P<name>[^\W\d]\w*)(?P<kind>:?=)(?P<value>.*)", re.DOTALL)


class InputSyntaxError(ValueError):
    """An input cannot be read as typed; the message shows how to write it."""


def read_inputs(typed: Iterable[str], json_file: Path | None = None) -> dict[str, Any]:
    """Return the inputs of a JSON file (an object), and those typed, which win over those of the file.

    Raises `InputSyntaxError`.
    """
    inputs: dict[str, Any] = {} if json_file is None else _read_file(json_file)
    seen: set[str] = set()
    for text in typed:
        name, value = _read(text)
        if name in seen:
            raise InputSyntaxError(f"input {name!r} is given twice")
        seen.add(name)
        inputs[name] = value
    return inputs


def _read(text: str) -> tuple[str, Any]:
    match = _INPUT.fullmatch(text)
    if match is None:
        raise InputSyntaxError(
            f"{text!r} is no input: write name=text, or name:=json (as in depth:=3 or tags:='[\"a\"]')"
        )
    if match["kind"] == "=":
        return match["name"], match["value"]
    try:
        return match["name"], json.loads(match["value"], parse_constant=_refuse)
    except ValueError as error:
        raise InputSyntaxError(
            f"{text!r}: what follows := is no JSON: {error}. Write {match['name']}={match['value']} for a text"
        ) from error


def _read_file(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    except OSError as error:
        raise InputSyntaxError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputSyntaxError(f"{path} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise InputSyntaxError(
            f'{path} holds a JSON {type(found).__name__}; inputs are an object, as in {{"topic": "x"}}'
        )
    return found


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
