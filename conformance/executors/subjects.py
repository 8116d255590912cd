"""The subjects: what each adapter says of itself. It is read, and not imported, for that needs its package."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["HERE", "Subject", "subjects"]

HERE = Path(__file__).parent
_SAID = ("PACKAGES", "IS_APART", "GAPS")


@dataclass(frozen=True, slots=True)
class Subject:
    """One executor of others.

    `packages` is what pip installs, the executor first; nothing for one that needs none. `is_apart` says that its
    environment must not have anything of ours. `gaps` says of a clause why the subject does not promise it. `about` is
    the docstring of the adapter.
    """

    name: str
    about: str
    packages: tuple[str, ...]
    is_apart: bool
    gaps: Mapping[str, str]

    @property
    def path(self) -> Path:
        """The file of the adapter."""
        return HERE / f"{self.name}.py"

    @property
    def target(self) -> str:
        """What `n00dles-testing explore` is given."""
        return f"conformance.executors.{self.name}:subject"

    @property
    def title(self) -> str:
        """What it is called in the table: the first words of the docstring."""
        return self.about.partition(":")[0]

    @property
    def package(self) -> str:
        """The name of the package that is judged, as in a list of versions; empty without one."""
        first = (*self.packages, "")[0]
        return first.partition("<")[0].partition("=")[0]

    @property
    def confirmations(self) -> list[Path]:
        """The scripts that show a finding with the subject's own API alone."""
        return sorted((HERE / "confirmations").glob(f"{self.name}_E[0-9][0-9]*.py"))


def subjects() -> list[Subject]:
    """Return all of them, by name."""
    return [found for path in sorted(HERE.glob("*.py")) if (found := _read(path)) is not None]


def _read(path: Path) -> Subject | None:
    module = ast.parse(path.read_text("utf-8"))
    said = {name: value for each in module.body if isinstance(each, ast.Assign) for name, value in _literal(each)}
    if "PACKAGES" not in said:
        return None
    return Subject(
        name=path.stem,
        about=ast.get_docstring(module) or "",
        packages=tuple(said["PACKAGES"]),
        is_apart=bool(said.get("IS_APART")),
        gaps=dict(said.get("GAPS", {})),
    )


def _literal(statement: ast.Assign) -> list[tuple[str, Any]]:
    names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
    return [(name, ast.literal_eval(statement.value)) for name in names if name in _SAID]
