"""The subjects of the field trial, as their modules in `conformance.backends` describe them."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["BACKENDS", "ROOT", "Subject", "subjects"]

ROOT = Path(__file__).resolve().parents[2]
BACKENDS = ROOT / "conformance" / "backends"


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """One published store, or one of ours.

    `packages` is what pip installs, the subject first; empty if it comes with Python. `published_apart` are packages
    that would take the place of ours, and are installed into a folder of their own. `server` is what the check starts
    for it. `gaps` says of a clause why the subject neither promises it nor gives an adapter anything to build it on.
    `not_run` says why it cannot be checked at all. `is_ours` says that it belongs to this project. `about` is the
    docstring of the adapter.
    """

    name: str
    about: str
    packages: tuple[str, ...] = ()
    published_apart: tuple[str, ...] = ()
    server: str | None = None
    server_modules: tuple[str, ...] = ()
    gaps: Mapping[str, str] = ()  # type: ignore[assignment]
    not_run: str = ""
    is_ours: bool = False

    @property
    def path(self) -> Path:
        """The file of the adapter."""
        return BACKENDS / f"{self.name}.py"

    @property
    def target(self) -> str:
        """What `n00dles-testing check` is given."""
        return f"conformance/backends/{self.name}.py:open_store"

    @property
    def title(self) -> str:
        """What it is called in the table: the first words of the adapter's docstring."""
        return self.about.partition("\n")[0].partition(":")[0].rstrip(".")

    @property
    def confirmations(self) -> list[Path]:
        """The scripts that show a finding with the subject's own API alone, by clause."""
        return sorted((BACKENDS / "confirmations").glob(f"{self.name}_[SCPW][0-9][0-9].py"))


def subjects() -> list[Subject]:
    """Return all of them, ours first, by name."""
    found = [_read(path.stem) for path in sorted(BACKENDS.glob("*.py")) if _has_a_factory(path)]
    return sorted(found, key=lambda each: not each.is_ours)


def _has_a_factory(path: Path) -> bool:
    body = ast.parse(path.read_text("utf-8")).body
    return any(isinstance(each, ast.FunctionDef) and each.name == "open_store" for each in body)


def _read(name: str) -> Subject:
    module = importlib.import_module(f"conformance.backends.{name}")
    return Subject(
        name=name,
        about=(module.__doc__ or "").strip(),
        packages=tuple(module.PACKAGES),
        published_apart=tuple(getattr(module, "PUBLISHED_APART", ())),
        server=module.SERVER,
        server_modules=tuple(getattr(module, "SERVER_MODULES", ())),
        gaps=dict(module.GAPS),
        not_run=getattr(module, "NOT_RUN", ""),
        is_ours=getattr(module, "IS_OURS", False),
    )
