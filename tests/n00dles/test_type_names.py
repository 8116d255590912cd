"""A declared type reads the same in every process, and differently once a part of it has changed."""

from __future__ import annotations

import os
import signal
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


class Odd(Enum):
    SHOUT = staticmethod(shout)
    OTHER = object()


def test_no_address_of_an_object_is_told() -> None:
    assert " at 0x" in repr([each.value for each in Odd])
    assert " at 0x" not in type_name(dict[str, Odd])


SCRIPT = """
import os
import signal
from typing import Annotated, Optional

from pydantic import AfterValidator, BaseModel

from n00dles import agent, pipeline, run


class Article(BaseModel):
    title: str


@agent
def writer(topic: Annotated[str, AfterValidator(lambda text: text)]) -> list[Article]:
    return [Article(title=topic)]


@agent
def editor(articles: list[Article]) -> Optional[Article]:
    return articles[0]


@agent
def publish(article: Article | None) -> str:
    if "DIE" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)
    return article.title


flow = pipeline(writer >> editor >> publish, name="flow")

if __name__ == "__main__":
    run(flow, run_id="r-1", topic="cats")
"""


def test_a_run_of_a_script_is_resumed_by_whoever_imports_it(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}

    def python(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env={**environment, **more}, capture_output=True, text=True, check=False
        )

    died = python("flow.py", DIE="yes")
    resumed = python("-m", "n00dles", "runs", "resume", "r-1", "flow.py:flow")

    assert died.returncode == -signal.SIGKILL, died.stderr
    assert resumed.returncode == 0, resumed.stderr
    assert '"output": "cats"' in resumed.stdout
    assert "already complete: writer, editor" in resumed.stdout + resumed.stderr
