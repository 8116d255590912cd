"""A request for several answers is refused, by name: a script gives one."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from n00dles_testing.llm import LLMServer
from n00dles_testing.llm.mock import MockLLM
from n00dles_testing.llm.scripted_server import ScriptedServer

ASKED: Any = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
REFUSED = "the request has n=2, and a script gives one answer to a request: ask once for each"


def test_mock_llm() -> None:
    with MockLLM().started() as mock_llm, openai.OpenAI() as client:
        mock_llm.reply(None, "yo", times=None)
        with pytest.raises(openai.BadRequestError, match=REFUSED):
            client.chat.completions.create(n=2, **ASKED)
        assert client.chat.completions.create(n=1, **ASKED).choices[0].message.content == "yo"

        assert mock_llm.problems() == [f"mock_llm: {REFUSED}"]


def test_llm_server() -> None:
    with LLMServer() as server, ScriptedServer(server, "mine").started() as llm, openai.OpenAI() as client:
        with pytest.raises(openai.BadRequestError, match=REFUSED):
            client.chat.completions.create(n=2, **ASKED)

        assert llm.problems() == [REFUSED]
