"""Finding what a user names: `package.module:name`, or `path/to/file.py:name`, and the way back from an object."""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from n00dles import targets
from n00dles.errors import ConfigurationError
from n00dles.pipeline import Pipeline, Step, pipeline

__all__ = ["TargetKind", "brings_its_pipeline", "load_target", "target_of"]

TargetKind = Literal["pipeline", "store", "executor"]

_EXPECTED = {
    "pipeline": "a pipeline: what pipeline(...) returns, or any step, or a PlainFunctions",
    "store": "a factory of a state store: a function that returns an open store",
    "executor": "an executor: an object with the methods run and resume",
}


def load_target(text: str, kind: TargetKind) -> Any:
    """Import and return what `text` names: a `Pipeline` (a single step becomes one), a store factory, or an executor.

    An executor that brings its pipeline, as `PlainFunctions`, may stand for a pipeline, and is returned as it is.
    Raises `ConfigurationError` if there is no such file, module or name, if the import fails (with the line of the
    user's own code), or if it is something else.
    """
    text = _as_module(text)
    try:
        found = targets.load_target(text)
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}{_did_you_mean(text)}") from error.__cause__
    if kind == "pipeline" and isinstance(found, Step):
        return found if isinstance(found, Pipeline) else pipeline(found)
    if kind == "pipeline" and brings_its_pipeline(found):
        return found
    if kind == "store" and _is_suite(found):
        return load_target(f"{text}.open_store", kind)
    if kind == "store":
        found = _bound(text, found)
    if (kind == "store" and callable(found)) or (kind == "executor" and hasattr(found, "resume")):
        return found
    raise ConfigurationError(f"{text} is of type {type(found).__name__}, and not {_EXPECTED[kind]}.")


def brings_its_pipeline(found: Any) -> bool:
    """Whether it is an executor that comes with its pipeline and its store (see `crash.life.SelfContained`)."""
    return isinstance(getattr(found, "pipeline", None), Pipeline) and all(
        callable(getattr(found, name, None)) for name in ("run", "resume", "describe", "open_store")
    )


def target_of(step: Any) -> str | None:
    """Return a text by which another process can import `step`; None if it is not at the top level of a module."""
    for module in list(sys.modules.values()):
        name = _name_in(module, step)
        if name is not None:
            return f"{_address(module)}:{name}"
    return None


def _is_suite(found: Any) -> bool:
    """Whether it is a class of tests that opens a store."""
    suite = sys.modules.get(f"{__package__}.store_tests.suite")
    return suite is not None and isinstance(found, type) and issubclass(found, suite.StateStoreConformance)


def _bound(text: str, found: Any) -> Any:
    """Return what a class has as a factory, `file.py:TestMyStore.open_store`, as that of an instance made for it.

    What the class says in `claims` and `reader` is then said by the factory, too.
    """
    owner, _, name = text.rpartition(".")
    if ":" not in owner:
        return found
    kind = targets.load_target(owner)
    if not isinstance(kind, type) or not callable(found):
        return found
    try:
        made = kind()
    except Exception as error:
        if not inspect.isfunction(found):
            return found
        raise ConfigurationError(
            f"{owner} cannot be made without arguments: {type(error).__name__}: {error}"
        ) from error
    factory = partial(getattr(made, name))
    for said in ("claims", "reader"):
        setattr(factory, said, getattr(made, said, getattr(found, said, None)))
    return factory


def _name_in(module: ModuleType, step: Any) -> str | None:
    if getattr(module, "__file__", None) is None or not isinstance(module, ModuleType):
        return None
    return next((name for name, value in list(vars(module).items()) if value is step), None)


def _address(module: ModuleType) -> str:
    """Return the module's name if importing it leads to the same file, else the file."""
    file = str(module.__file__)
    try:
        spec = importlib.util.find_spec(module.__name__)
    except (ImportError, ValueError):
        spec = None
    return module.__name__ if spec is not None and spec.origin == file and module.__name__ != "__main__" else file


def _as_module(text: str) -> str:
    """Return a file inside a package as the module that it is, so that its relative imports work."""
    place, _, name = text.rpartition(":")
    path = Path(place)
    if path.suffix != ".py" or not (path.parent / "__init__.py").is_file():
        return text
    path = path.resolve()
    parts = [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return f"{'.'.join(parts)}:{name}"


def _did_you_mean(text: str) -> str:
    place, _, name = text.rpartition(":")
    module = sys.modules.get(place) or sys.modules.get(Path(place).stem)
    if module is None or hasattr(module, name):
        return ""
    close = difflib.get_close_matches(name, [known for known in vars(module) if not known.startswith("_")])
    return f" Did you mean {' or '.join(close)}?" if close else ""
