"""A body that fails since it took plain data for a model is told which annotation is missing."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from n00dles import InMemoryStateStore, PipelineFailure, agent, pipeline, run
from n00dles.pipeline import Step
from n00dles_testing import ExplorationError, explore


class Quote(BaseModel):
    cents: int


@agent
def quote(topic: str) -> Quote:
    return Quote(cents=len(topic))


@agent
def quotes(topic: str) -> list[Quote]:
    return [Quote(cents=1)]


@agent
def plain(topic: str) -> dict[str, int]:
    return {"cents": 1}


@agent
def maybe(topic: str) -> Quote | None:
    return None


@agent
def add(q):  # type: ignore[no-untyped-def]
    return q.cents + 1


@agent
def add_any(q: Any) -> int:
    return int(q.cents)


@agent
def add_all(q):  # type: ignore[no-untyped-def]
    return sum(each.cents for each in q)


@agent
def add_two(quote, topic: str):  # type: ignore[no-untyped-def]
    return quote.cents


@agent
def add_late(q):  # type: ignore[no-untyped-def]
    raise ValueError("of its own")


explored = pipeline(quote >> add, name="explored")


def failure(steps: Step) -> PipelineFailure:
    with pytest.raises(PipelineFailure) as caught:
        run(steps, run_id="r", store=InMemoryStateStore(), topic="x")
    return caught.value


@pytest.mark.parametrize(
    ("steps", "hint"),
    [
        (
            quote >> add,
            "Its parameter `q` has no annotation, so it gets plain data; `quote` returns `Quote`: write `q: Quote`.",
        ),
        (
            quote >> add_any,
            "Its parameter `q` is annotated with Any, so it gets plain data; "
            "`quote` returns `Quote`: write `q: Quote`.",
        ),
        (quotes >> add_all, "`quotes` returns `list[Quote]`: write `q: list[Quote]`."),
        (
            quote >> add_two,
            "Its parameter `quote` has no annotation, so it gets plain data; "
            "`quote` returns `Quote`: write `quote: Quote`.",
        ),
        (pipeline(quote.named("q2"), name="inner") >> add, "`q2` returns `Quote`: write `q: Quote`."),
    ],
    ids=["alone", "any", "list", "by name", "nested"],
)
def test_the_missing_annotation_is_named(steps: Step, hint: str) -> None:
    error = failure(steps)

    assert error.hint.endswith(hint)
    assert f". {error.hint} Completed nodes are kept" in str(error)


@pytest.mark.parametrize(
    "steps", [plain >> add, maybe >> add, quote >> add_late], ids=["no model", "no value", "an error of its own"]
)
def test_another_cause_gets_no_such_hint(steps: Step) -> None:
    error = failure(steps)

    assert error.hint == ""
    assert ". Completed nodes are kept" in str(error)


def test_explore_names_it_too() -> None:
    with pytest.raises(ExplorationError, match="write `q: Quote`"):
        explore(f"{__name__}:explored", {"topic": "x"})
