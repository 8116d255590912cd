"""The subjects: what each program says of itself. It is read, and not imported, for that needs its packages."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from pathlib import Path

from ...executors.environments import interpreter, prepare

__all__ = ["OURS", "RAW", "Subject", "subjects"]

PROGRAMS = Path(__file__).parent / "programs"
RAW = "raw"
OURS = "n00dles_sqlite"


@dataclass(frozen=True, slots=True)
class Subject:
    """One program. `packages` is what pip installs, the framework first; `durability` says what it does for it.

    `grace` is how many seconds after a kill the framework leaves the run alone.
    """

    name: str
    about: str
    packages: tuple[str, ...]
    durability: str
    grace: float = 0.0

    @property
    def path(self) -> Path:
        """The file of the program."""
        return PROGRAMS / f"{self.name}.py"

    @property
    def title(self) -> str:
        """What it is called in the table: the first words of the docstring."""
        return self.about.partition(":")[0]

    @property
    def python(self) -> str:
        """Its interpreter, which `installed` makes."""
        return interpreter(self._environment) if self.packages else sys.executable

    def installed(self) -> str:
        """Install it if it is not there, and return its version. Raises `InstallError`."""
        if not self.packages:
            return ""
        package = self.packages[0].partition("<")[0].partition("=")[0]
        return prepare(self._environment, self.packages, with_ours=False)[package]

    @property
    def _environment(self) -> str:
        return f"peers/{self.name}"


def subjects() -> list[Subject]:
    """Return all of them: the raw limit, what is ours, then the others by name."""
    found = [subject for path in sorted(PROGRAMS.glob("*.py")) if (subject := _read(path)) is not None]
    return sorted(found, key=lambda subject: (subject.name != RAW, subject.name != OURS, subject.title.lower()))


def _read(path: Path) -> Subject | None:
    module = ast.parse(path.read_text("utf-8"))
    said = {
        target.id: each.value
        for each in module.body
        if isinstance(each, ast.Assign)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    if "PACKAGES" not in said:
        return None
    return Subject(
        name=path.stem,
        about=ast.get_docstring(module) or "",
        packages=tuple(ast.literal_eval(said["PACKAGES"])),
        durability=ast.literal_eval(said["DURABILITY"]),
        grace=ast.literal_eval(said["GRACE"]) if "GRACE" in said else 0.0,
    )
