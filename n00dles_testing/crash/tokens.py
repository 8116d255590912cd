"""The token behind `n00dles-testing replay`: one scenario as data, short enough for one line.

It is base64url of zlib of canonical JSON. Reading one builds texts, numbers, lists and dicts, and nothing else; what it
names is imported only when it is replayed, as `explore` imports what it is told on the command line.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import sysconfig
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from .points import Plan, Point

__all__ = ["BadTokenError", "Token", "below_here", "import_path", "is_target"]

_VERSION = 1
_SHOWN = 24
_MOST_BYTES = 64 * 2**20
"""What a token may grow to when it is unpacked."""


class BadTokenError(ValueError):
    """A text is no token, or not of this release. Copy the whole line that the failure printed."""


@dataclass(frozen=True, slots=True)
class Token:
    """One scenario: `target` and `store` as `explore` takes them (None is its default), and where it is killed."""

    target: str
    inputs: dict[str, Any]
    store: str | None
    mode: str
    plan: Plan
    path: tuple[str, ...] = ()
    """Folders to import from, relative to the current one, beside that itself."""

    def encode(self) -> str:
        """Return the token. The same scenario gives the same one, wherever the checkout lies."""
        form = {
            "v": _VERSION,
            "target": below_here(self.target),
            "inputs": self.inputs,
            "store": self.store,
            "mode": self.mode,
            "plan": [str(point) for point in self.plan],
            **({"path": list(self.path)} if self.path else {}),
        }
        text = json.dumps(form, sort_keys=True, separators=(",", ":"))
        return base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> Self:
        """Read a token. Raises `BadTokenError`."""
        form = _unpacked(text.strip())
        if not isinstance(form, dict) or form.get("v") != _VERSION:
            raise BadTokenError(f"{_short(text)} is a token of another release of n00dles-testing; use that one.")
        try:
            plan = tuple(Point.parse(point) for point in form["plan"])
            path = tuple(form.get("path", ()))
            token = cls(form["target"], form["inputs"], form["store"], form["mode"], plan, path)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise BadTokenError(f"{_short(text)} is damaged: {error}") from error
        texts = (token.target, token.mode, token.store or "", *token.path)
        if not isinstance(token.inputs, dict) or not all(map(is_target, texts)):
            raise BadTokenError(f"{_short(text)} is damaged: its fields are of other types than they should be.")
        if any(os.path.isabs(folder) for folder in token.path):
            raise BadTokenError(f"{_short(text)} is damaged: the folders that it imports from are not relative.")
        return token

    def import_from_its_folders(self) -> list[str]:
        """Put the folders of `path` on the import path, and return them all, with the current one, absolute."""
        folders = [os.path.abspath(folder) for folder in self.path]
        sys.path[:0] = [folder for folder in folders if folder not in sys.path]
        return [str(Path.cwd()), *folders]


def import_path() -> tuple[str, ...]:
    """Return what is on the import path and is of this project, relative to the current folder, which is left out.

    That is `src`, or `tests`: what a pytest has put there by `pythonpath=`, or to import the test itself.
    """
    here = Path.cwd()
    project = next((each for each in (here, *here.parents) if (each / "pyproject.toml").is_file()), here)
    installed = (Path(sys.prefix), *(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")))
    entries = dict.fromkeys(Path(os.path.abspath(entry)) for entry in sys.path)
    own = [
        entry
        for entry in entries
        if entry != here
        and entry.is_relative_to(project)
        and entry.is_dir()
        # An interpreter may lie in the project, but the project does not lie in it.
        and not any(entry.is_relative_to(place) and not project.is_relative_to(place) for place in installed)
    ]
    return tuple(Path(os.path.relpath(entry)).as_posix() for entry in own)


def _unpacked(text: str) -> Any:
    try:
        packed = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(packed, _MOST_BYTES)
        if not unpacking.eof or unpacking.unused_data:
            raise BadTokenError(
                f"{_short(text)} is cut short, or something follows it, or it unpacks to more than {_MOST_BYTES} bytes."
            )
        return json.loads(data)
    except BadTokenError:
        raise
    except (zlib.error, RecursionError, ValueError) as error:  # ValueError: no base64, no JSON, too many digits
        raise BadTokenError(f"{_short(text)} is no token; copy all of what stands after `replay`.") from error


def below_here(target: str, folder: str | None = None) -> str:
    """Return a file below `folder`, or the current one, by its relative path, which is the same in every checkout."""
    place, colon, name = target.rpartition(":")
    path = Path(place)
    here = Path(folder) if folder else Path.cwd()
    if path.is_absolute() and path.suffix == ".py" and path.is_relative_to(here):
        return f"{os.path.relpath(path, here)}{colon}{name}"
    return target


def is_target(value: object) -> bool:
    """Whether it is a text that could name something on this system: without NUL, and no lone surrogate in it."""
    try:
        return isinstance(value, str) and b"\0" not in value.encode()
    except UnicodeEncodeError:
        return False


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
