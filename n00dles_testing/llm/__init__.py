"""A fake LLM server: real HTTP from a process of its own, a journal of what was paid, and a kill at the worst moment.

    with LLMServer() as server:
        os.environ.update(server.environment)
        run(my_pipeline, topic="x")
        assert len(server.journal()) == 3

Replies are made up from the request (always the same for the same one), or come from a script.
"""

from __future__ import annotations

from .calls import LLMCall, Reply, ToolCall
from .client import LLMServer, ScriptError, arm_kill

__all__ = ["LLMCall", "LLMServer", "Reply", "ScriptError", "ToolCall", "arm_kill"]
