"""Wrong arguments are refused at the line that has them, with what to write."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel

from n00dles import agent, pipeline
from n00dles_testing.llm.calls import Reply
from n00dles_testing.llm.faults import RateLimited
from n00dles_testing.llm.mock import MockLLM


class Article(BaseModel):
    title: str


@agent(model="m")
def writer(topic: str) -> Article:
    """Write."""


@pytest.mark.parametrize(
    ("arguments", "options", "says"),
    [
        ((42, "x"), {}, r"mock_llm\.reply\(42, …\): a node is meant by its name, by the agent itself, or by None"),
        ((pipeline(writer, name="p"), "x"), {}, "Of a pipeline name the node that calls the model"),
        ((writer, Article), {}, r"mock_llm\.reply\(…, Article\) has a class; write .*, Article\(…\)"),
        (("writer", "x"), {"times": "2"}, r"times='2'\): write a number, or None"),
        (("writer", "x"), {"tool_calls": [{"name": "search"}]}, r'write tool_calls=\[ToolCall\("search", {…}\)\]'),
        (("writer", "x"), {"fault": RateLimited}, r"has a class; write RateLimited\(\)"),
    ],
)
def test_reply(arguments: tuple[Any, ...], options: dict[str, Any], says: str) -> None:
    mock_llm = MockLLM()

    with pytest.raises(TypeError, match=says):
        mock_llm.reply(*arguments, **options)

    assert mock_llm.unused == []


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (RateLimited, r"mock_llm\.fail\(…, RateLimited\) has a class; write RateLimited\(\)"),
        (TimeoutError("x"), r"TimeoutError\('x'\)\): this is of the type TimeoutError, and no fault\. .*raises=…"),
        ("RateLimited", r"'RateLimited'\): this is of the type str, and no fault"),
    ],
)
def test_fail(fault: Any, says: str) -> None:
    mock_llm = MockLLM()

    with pytest.raises(TypeError, match=says):
        mock_llm.fail("writer", fault, then="x")

    assert mock_llm.unused == []


def test_fail_takes_no_endless_fault() -> None:
    times: Any = None

    with pytest.raises(TypeError, match=r"mock_llm\.fail\(…, times=None\): write a number$"):
        MockLLM().fail("writer", RateLimited(), times=times)


class Colour(Enum):
    RED = "red"


@dataclass
class Note:
    text: str
    article: Article
    day: date = date(2030, 1, 31)
    colours: list[Colour] = field(default_factory=lambda: [Colour.RED])


@pytest.mark.parametrize(
    ("what", "data"),
    [
        (
            Note("x", Article(title="T")),
            {"text": "x", "article": {"title": "T"}, "day": "2030-01-31", "colours": ["red"]},
        ),
        (date(2030, 1, 31), "2030-01-31"),
        ({"colour": Colour.RED, "notes": (1, 2)}, {"colour": "red", "notes": [1, 2]}),
    ],
    ids=["dataclass", "date", "enum"],
)
def test_what_a_node_may_return_may_be_the_answer(what: Any, data: Any) -> None:
    assert Reply(data=what).data == data


def test_an_object_that_is_no_answer_is_refused() -> None:
    with pytest.raises(ValueError, match="object is neither JSON nor a Pydantic model, a dataclass, a date or an enum"):
        Reply(data={"x": object()})
