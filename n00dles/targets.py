"""Finding an object by what is typed on a command line: `package.module:name`, or `path/to/file.py:name`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import sysconfig
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from .errors import ConfigurationError

__all__ = ["load_target"]


def load_target(target: str, kind: type | None = None) -> Any:
    """Import a module, or a file, and return the object that `target` names in it.

    A module is looked for in the current folder first; the folder of a file is put on the import path, as `python
    file.py` does. Raises `ConfigurationError` if there is no such module or object, if the import fails, or if the
    object is not a `kind`.
    """
    place, separator, name = target.rpartition(":")
    if not separator or not place or not name:
        raise ConfigurationError(
            f"{target!r} is no target: write package.module:name or path/to/file.py:name, as in app.flows:my_pipeline."
        )
    if place.startswith(".") and not place.endswith(".py"):
        raise ConfigurationError(f"{target!r} names no module: write its whole name, as in app.flows:my_pipeline.")
    module = _import_file(Path(place)) if place.endswith(".py") else _import_module(place)
    found: Any = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ConfigurationError(f"{place} has no {name!r}.{_offer(module, kind)}") from None
    if kind is not None and not isinstance(found, kind):
        raise ConfigurationError(
            f"{target} is of type {type(found).__name__}, not a {kind.__name__.lower()}.{_offer(module, kind)}"
        )
    return found


def _import_module(name: str) -> ModuleType:
    _look_first_in(Path.cwd())
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise ConfigurationError(f"module {name!r} cannot be imported: {_reason(error)}") from error


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ConfigurationError(f"there is no file {str(path)!r} (from {str(Path.cwd())!r}).")
    path = path.resolve()
    loaded = sys.modules.get(path.stem)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path):
        return loaded
    # A file named like a module that is already imported must not take its place.
    name = path.stem if loaded is None else f"{path.stem}@{path.parent}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{str(path)!r} is no Python file.")
    _look_first_in(path.parent)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ConfigurationError(f"{str(path)!r} cannot be imported: {_reason(error)}") from error
    return module


def _look_first_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _reason(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r}). Put what is for running only under if __name__ == '__main__'."
    # The line of the user's own code says more than that of a library that it called.
    libraries = ("<frozen", __file__, *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")))
    own = [frame for frame in frames if not frame.filename.startswith(libraries)]
    where = f" (at {own[-1].filename}, line {own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {error}{where}"


def _offer(module: ModuleType, kind: type | None) -> str:
    """Name what the module has of that kind: the likeliest mistake is a mistyped name."""
    if kind is None:
        return ""
    names = [name for name, value in vars(module).items() if isinstance(value, kind)]
    return f" It has: {', '.join(names)}." if names else f" It has no {kind.__name__.lower()} at all."
