"""A mock is in this process, and what is killed is another: a check says so instead of calling the real thing."""

from __future__ import annotations

import pytest

from docs.examples.body import body_pipeline
from n00dles import agent, pipeline
from n00dles.testing import mock_agent, mock_pipeline
from n00dles_testing import ExplorationError, explore

INPUTS = {"text": "the cat and the dog"}


@pytest.mark.parametrize("mode", [None, "fork", "spawn"])
def test_a_check_in_other_processes_is_refused_while_something_is_mocked(mode: str | None) -> None:
    first = body_pipeline.agents()[0]

    with mock_agent(first, raises=ConnectionError):
        for target in (body_pipeline, "docs.examples.body:body_pipeline"):
            with pytest.raises(ExplorationError, match=rf"{first.name} is mocked in this process.*mode='in-process'"):
                explore(target, INPUTS, mode=mode)
    with mock_pipeline(body_pipeline, returns="mocked"), pytest.raises(ExplorationError, match="is mocked"):
        explore(body_pipeline, INPUTS, mode=mode)


def test_lives_in_this_process_meet_the_mock() -> None:
    ran = []

    @agent
    def collect(topic: str) -> list[str]:
        ran.append(topic)
        return [topic]

    @agent
    def join(found: list[str]) -> str:
        return " ".join(found)

    with mock_agent(collect, returns=["a", "b"]) as mock:
        report = explore(pipeline(collect >> join, name="flow"), {"topic": "x"})

    assert report.ok, str(report)
    assert report.mode == "in-process"
    assert ran == []
    assert mock.call_count > 2
