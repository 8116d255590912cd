"""Replies by node: the providers say which node calls, to the fake server and to nobody else."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from n00dles import RetryPolicy, agent, pipeline, run
from n00dles.providers import OpenAIProvider
from n00dles_testing.llm.faults import Overloaded
from n00dles_testing.llm.scripted_server import ScriptedServer


@agent(model="gpt-4o-mini")
def researcher(topic: str) -> str: ...


@agent(model="claude-sonnet-4-6")
def writer(research: str) -> str: ...


def test_each_node_gets_its_own_reply_whatever_their_order(llm: ScriptedServer) -> None:
    llm.reply("schöne-Worte", "third")
    llm.reply("writer", "second")
    llm.reply("researcher", "first")

    result = run(
        pipeline(researcher >> writer >> writer.named("schöne-Worte"), name="content"), topic="x", store="memory://"
    )

    assert result.output == "third"
    assert [(call.node, call.reply) for call in llm.calls] == [
        ("researcher", "first"),
        ("writer", "second"),
        ("schöne-Worte", "third"),
    ]


def test_a_client_may_say_its_node_itself(llm: ScriptedServer, openai_client: Any) -> None:
    llm.reply("writer", "second")
    llm.reply(None, "whoever asks")
    asked = {"model": "m", "messages": [{"role": "user", "content": "x"}]}

    answers = [
        openai_client.chat.completions.create(**asked, extra_headers=headers).choices[0].message.content
        for headers in ({}, {"N00dles-Node": "writer"})
    ]

    assert answers == ["whoever asks", "second"]


def test_a_real_provider_is_told_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    headers: list[dict[str, str]] = []

    class Elsewhere(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            headers.append({name.lower(): value for name, value in self.headers.items()})
            message = {"role": "assistant", "content": "ok"}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            body = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
            answer = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None: ...

    monkeypatch.delenv("N00DLES_LLM_CONTROL", raising=False)
    with HTTPServer(("127.0.0.1", 0), Elsewhere) as real:
        Thread(target=real.handle_request, daemon=True).start()
        elsewhere = OpenAIProvider(api_key="k", base_url=f"http://127.0.0.1:{real.server_port}/v1")

        @agent(model="gpt-x", provider=elsewhere)
        def reviewer(topic: str) -> str: ...

        run(pipeline(reviewer, name="review"), topic="x", store="memory://")

    (sent,) = headers
    assert "idempotency-key" in sent
    assert not [name for name in sent if name.startswith("n00dles")]


def test_a_fallback_is_answered_under_its_own_name(llm: ScriptedServer) -> None:
    once = RetryPolicy(max_attempts=1)

    @agent(model="gpt-4o-mini", retry=once)
    def backup(topic: str) -> str: ...

    @agent(model="gpt-4o-mini", retry=once, fallback=backup)
    def primary(topic: str) -> str: ...

    llm.fail("primary", Overloaded())
    llm.reply("backup", "B")

    assert run(pipeline(primary, name="guarded"), topic="x", store="memory://").output == "B"
    assert [(call.node, call.agent) for call in llm.calls] == [("primary", ""), ("primary", "backup")]
