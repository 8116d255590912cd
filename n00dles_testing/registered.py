"""Stores that other packages register: an entry point whose object is a factory, so that `check NAME` finds it.

[project.entry-points."n00dles_testing.stores"]
mystore = "mypackage.store:open_store"
"""

from __future__ import annotations

import ast
import difflib
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from n00dles.errors import ConfigurationError

__all__ = ["GROUP", "load_registered"]

GROUP = "n00dles_testing.stores"


def load_registered(name: str) -> Any:
    """Return the factory that is registered as `name`.

    Raises `ConfigurationError` if there is none (naming those there are), if it cannot be imported, or is no function.
    """
    registered = _registered()
    if name not in registered:
        raise ConfigurationError(_unknown(name, list(registered)))
    entry = registered[name]
    try:
        factory = entry.load()
    except Exception as error:
        raise ConfigurationError(
            f"the store {name!r} is registered as {entry.value}, which cannot be imported: "
            f"{type(error).__name__}: {error}"
        ) from error
    if not callable(factory):
        raise ConfigurationError(
            f"the store {name!r} is registered as {entry.value}, which is of type {type(factory).__name__}, and not a "
            "factory: a function that returns an open store."
        )
    return factory


def _registered() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)}


def _factory_in(file: str) -> str:
    """Return the function of a file that looks like one that opens a store, found without running it."""
    try:
        body = ast.parse(Path(file).read_text("utf-8")).body
    except (OSError, ValueError, SyntaxError):
        return "open_store"
    functions = [each.name for each in body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    functions = [name for name in functions if not name.startswith("_")]
    likely = [name for name in functions if "open" in name or "store" in name]
    return next(iter([*likely, *(functions if len(functions) == 1 else [])]), "open_store")


def _unknown(name: str, registered: list[str]) -> str:
    known = f"registered are {', '.join(registered)}" if registered else "no package here registers any"
    if name.endswith(".py"):
        return (
            f"{name!r} names a file, and no function in it: write {name}:{_factory_in(name)}, the function that opens "
            "the store."
        )
    close = difflib.get_close_matches(name, registered, 1)
    hint = f" Did you mean {close[0]}?" if close else ""
    return (
        f"{name!r} is no store: write a URL (sqlite:///{name}), package.module:factory, path/to/file.py:factory, or "
        f"the name of a registered store; {known}.{hint} "
        f"A package registers one by an entry point of the group {GROUP!r}."
    )
