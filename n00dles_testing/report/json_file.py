"""The report for other programs: one JSON object with a format version, written whole or not at all."""

from __future__ import annotations

import json
import os
import platform
import tempfile
import time
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "check_writable",
    "enveloped",
    "json_text",
    "shortened",
    "write_json",
    "write_whole",
    "written_whole",
]

FORMAT = "n00dles-testing-report"
FORMAT_VERSION = 1
_SHOWN = 200
"""Rises when a field changes its meaning or goes; new fields may come at any time."""


def write_json(path: Path, kind: str, content: Mapping[str, Any]) -> None:
    """Write a report of `kind` ("check" or "explore"), replacing the file at `path` in one step.

    Raises `OSError` if that is not possible; an older report is then still there.
    """
    write_whole(path, json_text(kind, content))


def json_text(kind: str, content: Mapping[str, Any]) -> str:
    """Return the text of a report of `kind`."""
    # Lone surrogates from a store stay escapes in JSON text, so the file is always ASCII.
    return json.dumps(enveloped(kind, content), indent=2) + "\n"


def enveloped(kind: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report of `kind`: its content, and by what, when and where it was made."""
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "kind": kind,
        "written_by": f"n00dles-testing {package_version()}",
        "written_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        **content,
    }


def write_whole(path: Path, text: str) -> None:
    """Write a text, replacing the file at `path` in one step. Raises `OSError`; an older file is then still there."""
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")  # a pipe or a terminal cannot be replaced
        return
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # What mkstemp makes is for its owner alone; a report is an ordinary file.
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def written_whole(path: Path, text: str) -> tuple[bool, str]:
    """Write a report; return whether that went well, and a sentence about it: results were shown, all the same."""
    try:
        write_whole(path, text)
    except OSError as error:
        return False, f"the report could not be written to {path}: {error.strerror}"
    return True, f"report written to {path}"


def check_writable(path: Path) -> str | None:
    """Say why no report can be written to `path`, or return None: to be asked before a long check, not after."""
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except OSError as error:
        return f"{shortened(str(path))} cannot be written to: {error.strerror}"
    if path.is_dir():
        return f"{path} is a folder; name a file in it"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    target = path if path.exists() and not path.is_file() else path.parent
    return None if os.access(target, os.W_OK) else f"{target} cannot be written to"


def shortened(text: str) -> str:
    """Return a long text as its beginning, and how long it is."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def package_version() -> str:
    """Return the version of the installed distribution, or `unknown` in a bare checkout."""
    try:
        return version("n00dles-testing")
    except PackageNotFoundError:
        return "unknown"


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
