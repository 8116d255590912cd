"""What pyproject.toml promises of the package."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator

import pytest

from tests.docs.pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGES = ("n00dles", "n00dles_testing")


def imported() -> set[str]:
    """Return the top-level names of every import in both packages, those inside functions too."""
    return {
        name.partition(".")[0]
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in _names(node)
    }


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and not node.level:
        yield node.module or ""


def _name(requirement: str) -> str:
    return re.split(r"[^\w-]", requirement)[0]


OF_USERS = [
    *PROJECT["dependencies"],
    *PROJECT["optional-dependencies"]["openai"],
    *PROJECT["optional-dependencies"]["anthropic"],
]


@pytest.mark.parametrize("requirement", OF_USERS)
def test_what_is_required_is_imported(requirement: str) -> None:
    assert _name(requirement) in imported()


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_is_marked_as_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").exists()
