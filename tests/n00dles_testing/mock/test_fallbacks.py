"""A fallback is called for a node: a script may name either."""

from __future__ import annotations

import pytest

from n00dles import PipelineFailure, RetryPolicy, agent, pipeline, run
from n00dles_testing.llm.faults import Overloaded
from n00dles_testing.llm.mock import MockLLM

ONCE = RetryPolicy(max_attempts=1)


@agent(model="gpt-4o-mini", retry=ONCE)
def backup(topic: str) -> str:
    """Step in."""


@agent(model="gpt-4o-mini", retry=ONCE, fallback=backup)
def primary(topic: str) -> str:
    """Answer."""


guarded = pipeline(primary, name="guarded")


@pytest.mark.parametrize("named", [backup, "backup", "primary"])
def test_a_fallback_is_answered(mock_llm: MockLLM, named: object) -> None:
    mock_llm.fail("primary", Overloaded())
    mock_llm.reply(named, "B")

    assert run(guarded, topic="t", store="memory://").output == "B"
    assert [(call.node, call.agent) for call in mock_llm.calls] == [("primary", ""), ("primary", "backup")]


def test_a_fallback_without_a_reply_is_named() -> None:
    with MockLLM().started() as mock_llm:
        mock_llm.fail("primary", Overloaded())
        with pytest.raises(PipelineFailure):
            run(guarded, topic="t", store="memory://")

        (problem,) = mock_llm.problems()

    assert "mock_llm has no reply for node 'primary', whose fallback 'backup' is called (gpt-4o-mini), " in problem
    assert '  to add: mock_llm.reply("backup", "…")' in problem
