"""A reply that does not fit what the node returns is named where the node asks again and there is no other."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel

from n00dles import PipelineFailure, RetryPolicy, agent, pipeline, run
from n00dles_testing.llm.misfits import misfit
from n00dles_testing.llm.mock import MockLLM


class Source(BaseModel):
    url: str


class Article(BaseModel):
    title: str
    stars: int = 0
    mood: Literal["good", "bad"] = "good"
    source: Source | None = None
    more: list[Source] = []


class Other(BaseModel):
    foo: int


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ('{"titel": "t"}', "title is missing"),
        ('{"title": "t"}', ""),
        ('{"title": "t", "stars": 1.0, "source": null, "more": [{"url": "u"}]}', ""),
        ('{"title": "t", "stars": true}', "stars is True, and no integer"),
        ('{"title": "t", "mood": "sad"}', "mood is 'sad', and none of ['good', 'bad']"),
        ('{"title": "t", "source": {}}', "source.url is missing"),
        ('{"title": "t", "more": [{"url": "u"}, {"url": 2}]}', "more.1.url is 2, and no string"),
        ("just text", "it is no JSON"),
        ("[]", "it is [], and no object"),
    ],
)
def test_what_is_wrong(answer: str, wrong: str) -> None:
    assert misfit(answer, Article.model_json_schema()) == wrong


@agent(model="claude-sonnet-4-6", retry=RetryPolicy(max_attempts=2, base_delay=0))
def writer(topic: str) -> Article:
    """Write."""


@pytest.mark.parametrize(
    ("reply", "wrong"),
    [({"titel": "t"}, "title is missing"), ("just text", "it is no JSON"), (Other(foo=1), "title is missing")],
)
def test_a_reply_that_does_not_fit_is_called_that(reply: Any, wrong: str) -> None:
    with MockLLM().started() as mock_llm:
        mock_llm.reply("writer", reply)
        with pytest.raises(PipelineFailure):
            run(pipeline(writer, name="alone"), topic="x", store="memory://")

        (problem,) = mock_llm.problems()

    assert "  the reply before, reply('writer', " in problem
    assert f"did not fit Article: {wrong}" in problem
    assert "to add" not in problem
    assert "used up" not in problem


def test_a_reply_that_fits_is_not() -> None:
    with MockLLM().started() as inner:
        inner.reply("writer", Article(title="t"))
        run(pipeline(writer, name="alone"), topic="x", store="memory://")
        with pytest.raises(PipelineFailure):
            run(pipeline(writer, name="alone"), topic="y", store="memory://")

        assert '  to add: mock_llm.reply("writer", Article(…))' in inner.problems()[0]
