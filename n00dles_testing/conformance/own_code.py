"""Whose code a file is: the store's own, another package's, the standard library's, or the suite's."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from traceback import FrameSummary

import n00dles

__all__ = ["innermost_of_the_store", "is_ours", "is_the_librarys"]

_INSTALLED = ("site-packages", "dist-packages")
_TESTING = Path(__file__).resolve().parents[1]
_OURS = tuple(f"{folder}{os.sep}" for folder in (_TESTING, Path(n00dles.__file__).resolve().parent))
_STORES_OF_OURS = f"{_TESTING / 'conformance' / 'mutants'}{os.sep}"
"""These stand for stores of somebody else."""
_LIBRARY = tuple(
    f"{folder}{os.sep}"
    for name in ("stdlib", "platstdlib")
    for path in [sysconfig.get_path(name)]
    for folder in (path, os.path.realpath(path))
)


def innermost_of_the_store(frames: Sequence[FrameSummary]) -> FrameSummary | None:
    """Return the innermost frame in the store's own code, else the innermost one; None if there is none at all.

    A store may be installed itself: then it is the package that the suite has called.
    """
    others = [frame for frame in frames if not is_ours(frame.filename) and not is_the_librarys(frame.filename)]
    own = [frame for frame in others if _package(frame.filename) is None]
    if not own and others:
        first = _package(others[0].filename)
        own = [frame for frame in others if _package(frame.filename) == first]
    return next(reversed(own or [*frames]), None)


def is_ours(file: str) -> bool:
    """Whether it is a file of n00dles or of its suite."""
    return file.startswith(_OURS) and not file.startswith(_STORES_OF_OURS)


def is_the_librarys(file: str) -> bool:
    """Whether it is a file of Python itself, or no file at all."""
    return file.startswith("<") or (file.startswith(_LIBRARY) and _package(file) is None)


def _package(file: str) -> str | None:
    """Return the installed package, or module, that a file belongs to; None for one that is not installed."""
    parts = Path(file).parts
    for folder in _INSTALLED:
        if folder in parts[:-1]:
            return parts[parts.index(folder) + 1]
    return None
