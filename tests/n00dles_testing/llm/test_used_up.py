"""A reply that is used up where a run is killed and resumed: the message says what such a test needs."""

from __future__ import annotations

import pytest

from n00dles import PipelineFailure, RetryPolicy, agent, pipeline, run
from n00dles_testing.llm import LLMServer
from n00dles_testing.llm.scripted_server import ScriptedServer


@agent(model="gpt-4o-mini", retry=RetryPolicy(max_attempts=1))
def researcher(topic: str) -> str: ...


alone = pipeline(researcher, name="alone")


def test_it_says_that_a_killed_run_asks_again(running_server: LLMServer) -> None:
    with ScriptedServer(running_server, "used-up").started() as llm:
        llm.reply("researcher", "facts")
        run(alone, topic="x", store="memory://")
        with pytest.raises(PipelineFailure):
            run(alone, topic="x", store="memory://")

        (problem,) = llm.problems()

    assert "  used up: what the script had for 'researcher'" in problem
    assert "  a run that is killed asks again when it is resumed (crash_safety): give replies times=None" in problem
