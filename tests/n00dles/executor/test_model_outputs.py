"""What a model may declare as its output: all that Pydantic can bring back from JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel

from n00dles import InMemoryStateStore, LLMResponse, agent, resume, run


class Category(Enum):
    BILLING = "billing"


class Article(BaseModel):
    title: str


@dataclass
class Place:
    city: str


@pytest.mark.parametrize(
    ("declared", "answer", "output"),
    [
        (Category, "billing", Category.BILLING),
        (date, "2026-11-29", date(2026, 11, 29)),
        (tuple[int, int], [1, 2], (1, 2)),
        (set[int], [3], {3}),
        (Place, {"city": "Bern"}, Place("Bern")),
        (list[Article], [{"title": "a"}], [Article(title="a")]),
        (Article | None, None, None),
        (int, 3, 3),
    ],
    ids=["enum", "date", "tuple", "set", "dataclass", "models", "none", "int"],
)
def test_an_answer_comes_back_in_its_declared_type_in_every_life(declared: Any, answer: Any, output: Any) -> None:
    class Provider:
        async def complete(self, prompt: str, system: str, **kwargs: Any) -> LLMResponse:
            return LLMResponse(content=json.dumps(answer))

    def ask(topic: str) -> Any:
        """Answer."""

    ask.__annotations__["return"] = declared
    asked = agent(model="mine", provider=Provider())(ask)
    store = InMemoryStateStore()

    first = run(asked, run_id="r", store=store, topic="x")
    second = resume(asked, "r", store=store)

    assert first.output == second.output == output
    assert type(first.output) is type(second.output) is type(output)
