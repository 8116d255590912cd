"""Targets: what a user names is found, and what cannot be found is said with what to do."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

from n00dles import Pipeline, agent, pipeline
from n00dles.errors import ConfigurationError
from n00dles_testing import StateStoreConformance
from n00dles_testing.targets import load_target, target_of


@agent
def shout(text: str) -> str:
    return text.upper()


flow = pipeline(shout, name="flow")


@pytest.fixture(autouse=True)
def _imports_stay_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


def test_a_step_becomes_a_pipeline() -> None:
    found = load_target(f"{__file__}:shout", "pipeline")

    assert isinstance(found, Pipeline)
    assert [step.name for step in found.agents()] == ["shout"]


def test_a_file_inside_a_package_is_imported_with_its_relative_imports(tmp_path: Path) -> None:
    package = tmp_path / "shop_7d1" / "flows"
    package.mkdir(parents=True)
    (tmp_path / "shop_7d1" / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    (package / "parts.py").write_text("from n00dles import agent\n@agent\ndef part(x: str) -> str:\n    return x\n")
    (package / "flow.py").write_text("from .parts import part\nfrom n00dles import pipeline\nflow = pipeline(part)\n")

    found = load_target(f"{package / 'flow.py'}:flow", "pipeline")

    assert found.agents()[0].name == "part"


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("flow", "pipeline", "is no target"),
        ("no_such_package.flows:flow", "pipeline", "no_such_package"),
        ("no/such/file.py:flow", "pipeline", "there is no file 'no/such/file.py'"),
        (f"{__file__}:flo", "pipeline", "Did you mean flow?"),
        (f"{__file__}:Path", "pipeline", "not a pipeline"),
        (f"{__file__}:__name__", "store", "is of type str, and not a factory of a state store"),
        (f"{__file__}:flow", "executor", "not an executor"),
    ],
)
def test_what_cannot_be_found_or_is_something_else_is_refused(text: str, kind: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_target(text, kind)  # type: ignore[arg-type]

    assert message in str(caught.value)


def test_an_error_while_importing_names_the_line_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "broken_3f2.py").write_text("import os\n\nvalue = os.environ['NO_SUCH_VARIABLE']\n")

    with pytest.raises(ConfigurationError) as caught:
        load_target(f"{tmp_path / 'broken_3f2.py'}:flow", "pipeline")

    assert "KeyError" in str(caught.value)
    assert "broken_3f2.py, line 3" in str(caught.value)


class Suite:
    claims: ClassVar = {"level": 1}

    def method(self, location: str) -> str:
        return f"{type(self).__name__} at {location}"

    @staticmethod
    def static(location: str) -> str:
        return f"static at {location}"

    @classmethod
    def of_class(cls, location: str) -> str:
        return f"{cls.__name__} of {location}"

    kind = Path


@pytest.mark.parametrize(
    ("name", "opened"),
    [("method", "Suite at x"), ("static", "static at x"), ("of_class", "Suite of x"), ("kind", Path("x"))],
)
def test_a_factory_of_a_class_is_that_of_an_instance_and_says_what_the_class_claims(name: str, opened: Any) -> None:
    factory = load_target(f"{__file__}:Suite.{name}", "store")

    assert factory("x") == opened
    assert factory.claims == {"level": 1}


class TestOfAStore(StateStoreConformance):
    __test__ = False

    def open_store(self, location: str) -> Path:
        return Path(location)


def test_a_class_of_tests_stands_for_its_factory() -> None:
    factory = load_target(f"{__file__}:TestOfAStore", "store")

    assert factory("x") == Path("x")


class NeedsArguments:
    def __init__(self, folder: str) -> None:
        self.folder = folder

    def method(self, location: str) -> str:
        return self.folder + location


def test_a_factory_of_a_class_that_cannot_be_made_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="NeedsArguments cannot be made without arguments: TypeError"):
        load_target(f"{__file__}:NeedsArguments.method", "store")


def test_a_pipeline_at_the_top_of_a_module_is_found_again_by_its_address() -> None:
    address = target_of(flow)

    assert address is not None
    assert address.endswith(":flow")
    assert [step.name for step in load_target(address, "pipeline").agents()] == ["shout"]


def test_a_pipeline_that_no_module_holds_has_no_address() -> None:
    assert target_of(pipeline(shout, name="elsewhere")) is None
