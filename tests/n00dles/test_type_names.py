"""A declared type reads the same in every process, and differently once a part of it has changed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NewType, Optional, TypedDict, TypeVar, Union

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, computed_field

from n00dles.type_names import type_name

T = TypeVar("T")
UserId = NewType("UserId", str)


class Status(Enum):
    DRAFT = "draft"
    DONE = "done"


class Part(BaseModel):
    total: Decimal


class Article(BaseModel):
    title: str = Field(alias="headLine")
    status: Status
    parts: list[Part]
    first: Part | None = None

    @computed_field
    def words(self) -> int:
        return 1


class Tree(BaseModel):
    children: list[Tree] = []


class Box(BaseModel, Generic[T]):
    value: T


class Typed(TypedDict):
    a: int


@dataclass
class Point:
    x: float


def shout(text: str) -> str:
    return text.upper()


@pytest.mark.parametrize(
    ("declared", "name"),
    [
        (str, "str"),
        (None, "None"),
        (Any, "Any"),
        (list[int], "list[int]"),
        (dict[str, Any], "dict[str, Any]"),
        (tuple[int, ...], "tuple[int, ...]"),
        (int | None, "int | None"),
        (Optional[int], "int | None"),  # noqa: UP045
        (Union[None, int, str], "int | str | None"),  # noqa: UP007
        (date | datetime, "date | datetime"),
        (datetime | date, "datetime | date"),
        (Literal["a", 1], "Literal['a', 1]"),
        (Literal[Status.DONE], "Literal[Status.DONE]"),
        (Annotated[str, AfterValidator(shout)], "str"),
        (list[Annotated[int, Field(gt=0)]], "list[int]"),
        (Callable[[int], str], "Callable[[int], str]"),
        (UserId, "UserId"),
        (Status, "Status('draft', 'done')"),
        (Part, "Part{total: Decimal}"),
        (list[Part], "list[Part{total: Decimal}]"),
        (Part | None, "Part{total: Decimal} | None"),
        (Box[int], "Box[int]{value: int}"),
        (Box[Part], "Box[Part]{value: Part{total: Decimal}}"),
        (Box[list[Part]], "Box[list[Part]]{value: list[Part{total: Decimal}]}"),
        (Tree, "Tree{children: list[Tree]}"),
        (Typed, "Typed{a: int}"),
        (Point, "Point{x: float}"),
        (
            Article,
            "Article{title (headLine): str, status: Status('draft', 'done'), parts: list[Part{total: Decimal}], "
            "first: Part | None, words: int}",
        ),
    ],
    ids=[str(number) for number in range(28)],
)
def test_a_type_is_told_with_all_that_it_holds(declared: Any, name: str) -> None:
    assert type_name(declared) == name


def test_a_class_is_called_by_its_own_name_wherever_it_was_defined() -> None:
    class Local(BaseModel):
        model_config = ConfigDict(frozen=True)
        title: str

    assert type_name(dict[str, Local]) == "dict[str, Local{title: str}]"


def test_a_model_that_waits_for_another_is_told_whole_once_that_is_there() -> None:
    class Outer(BaseModel):
        inner: Later

    before = type_name(list[Outer])

    class Later(BaseModel):
        n: int

    Outer.model_rebuild()

    assert before == "list[Outer]"
    assert type_name(list[Outer]) == "list[Outer{inner: Later{n: int}}]"


SCRIPT = """
from typing import Annotated
from pydantic import AfterValidator, BaseModel
from n00dles import agent

class Article(BaseModel):
    title: str

@agent
def writer(facts: list[Article], text: Annotated[str, AfterValidator(lambda text: text)]) -> Article | None: ...

print(writer.signature)
"""


def test_a_script_and_its_module_agree(tmp_path: Any) -> None:
    (tmp_path / "flow.py").write_text(SCRIPT)

    ways = (["flow.py"], ["-c", "import flow"])
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    told = {
        subprocess.run(
            [sys.executable, *way], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        ).stdout
        for way in ways
    }

    assert told == {"writer(facts: list[Article{title: str}], text: str) -> Article{title: str} | None\n"}
