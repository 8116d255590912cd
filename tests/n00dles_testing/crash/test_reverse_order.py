"""Completion order is permuted between lives: in even ones the member that is listed last returns first."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from n00dles import LLMResponse, agent, parallel, pipeline
from n00dles_testing.crash.history import Life
from n00dles_testing.crash.inner_loop import InnerLoop
from n00dles_testing.crash.life import ReferenceExecutor
from n00dles_testing.crash.points import Plan, Point
from tests.n00dles_testing.crash import pipelines


class Model:
    async def complete(self, prompt: str, system: str, **kwargs: Any) -> LLMResponse:
        return LLMResponse(content=prompt, input_tokens=1, output_tokens=1)


def at_once(text: str) -> str:
    return text


async def later(text: str) -> str:
    await asyncio.sleep(0.001)
    return text


def awaitable(text: str) -> Any:
    return later(text)


def lived(flow: Any, *texts: str) -> list[Life]:
    plan: Plan = tuple(Point.parse(text) for text in texts)
    return InnerLoop(flow, ReferenceExecutor(), {"text": "tea"}).case(plan).history.working


def returned(life: Life, members: list[str]) -> list[str]:
    calls = sorted((call for call in life.calls if call.ended is not None), key=lambda call: call.ended or 0)
    return [call.node for call in calls if call.node in members]


@pytest.mark.parametrize("body", [at_once, later, awaitable])
def test_members_of_any_kind_return_in_the_reverse_order_in_the_second_life(body: Any) -> None:
    one, two, three = (agent(body).named(name) for name in ("one", "two", "three"))
    flow = pipeline(one | two | three, name="flow")

    _, second = lived(flow, "run-started")

    assert returned(second, ["one", "two", "three"]) == ["three", "two", "one"]
    assert second.outcomes[-1]["ok"]


def test_models_do_so_as_well_and_the_third_life_goes_as_the_first() -> None:
    def ask(text: str) -> str:
        """Answer."""
        raise NotImplementedError

    members = [agent(model="scripted", provider=Model())(ask).named(name) for name in ("one", "two", "three")]
    flow = pipeline(parallel(*members), name="flow")

    _, second, third = lived(flow, "run-started", "joined:parallel[one,two,three]")
    _, _, again = lived(flow, "run-started", "run-started")

    assert returned(second, ["one", "two", "three"]) == ["three", "two", "one"]
    assert third.calls == []
    assert returned(again, ["one", "two", "three"]) == ["one", "two", "three"]


def test_members_that_run_one_after_the_other_do_so_still() -> None:
    _, second = lived(pipelines.fan, "run-started")

    assert returned(second, ["left", "middle", "right"]) == ["left", "middle", "right"]
    assert second.outcomes[-1]["ok"]
