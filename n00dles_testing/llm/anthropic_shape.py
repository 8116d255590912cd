"""Anthropic's messages, as they go over the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from .shapes import (
    EVENTS,
    JSON,
    Answer,
    Completion,
    LLMRequest,
    Shape,
    TurnedDownError,
    encoded,
    in_pieces,
    make_request,
    plain_text,
)

__all__ = ["AnthropicShape"]


_LAST_VERSION_WITH_SAMPLING = "2023-06-01"


class AnthropicShape(Shape):
    """`POST /v1/messages`."""

    name = "anthropic"
    path = "/v1/messages"
    _STOPS: ClassVar = {"end": "end_turn", "length": "max_tokens", "filter": "refusal", "refusal": "refusal"}

    def answer(self, request: LLMRequest, completion: Completion, serial: str) -> Answer:
        """Write one message, or its events."""
        content, stop = completion.text, self._STOPS[completion.stop]
        block: dict[str, Any] = {"type": "text", "text": content}
        tool_input = _json_object(content) if request.tool is not None and completion.stop == "end" else None
        if tool_input is not None:
            block = {"type": "tool_use", "id": f"toolu_{serial}", "name": request.tool, "input": tool_input}
            stop = "tool_use"
        message = {
            "id": f"msg_{serial}",
            "type": "message",
            "role": "assistant",
            "model": request.model,
            "content": [block] if content else [],
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {"input_tokens": completion.input_tokens, "output_tokens": completion.output_tokens},
        }
        if not request.stream:
            return Answer(200, JSON, [encoded(message)])
        events = self._events(message, block, content)
        return Answer(
            200, EVENTS, [f"event: {each['type']}\n".encode() + b"data: " + encoded(each) + b"\n\n" for each in events]
        )

    def _events(self, message: dict[str, Any], block: dict[str, Any], content: str) -> Iterator[dict[str, Any]]:
        usage = message["usage"]
        start = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 0}}
        yield {"type": "message_start", "message": start}
        if message["content"]:
            empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
            kind, key = ("text_delta", "text") if block["type"] == "text" else ("input_json_delta", "partial_json")
            yield {"type": "content_block_start", "index": 0, "content_block": empty}
            for piece in in_pieces(content):
                yield {"type": "content_block_delta", "index": 0, "delta": {"type": kind, key: piece}}
            yield {"type": "content_block_stop", "index": 0}
        delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage["output_tokens"]}}
        yield {"type": "message_stop"}

    def error(self, status: int, message: str) -> Answer:
        """Write an error object."""
        kind = "authentication_error" if status == 401 else "invalid_request_error"  # noqa: PLR2004
        return Answer(status, JSON, [encoded({"type": "error", "error": {"type": kind, "message": message}})])

    def _has_key(self, headers: Mapping[str, str]) -> bool:
        return bool(headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer").strip())

    def _request(self, raw: bytes, body: dict[str, Any], headers: Mapping[str, str]) -> LLMRequest:
        if not isinstance(body.get("max_tokens"), int):
            raise TurnedDownError("max_tokens: Field required")
        sampling = body.keys() & {"temperature", "top_p", "top_k"}
        if sampling and headers.get("anthropic-version") != _LAST_VERSION_WITH_SAMPLING:
            raise TurnedDownError(f"{min(sampling)}: not supported by this anthropic-version")
        output = (body.get("output_config") or {}).get("format") or {}
        choice = body.get("tool_choice") or {}
        tool = choice.get("name") if choice.get("type") == "tool" else None
        schema = output.get("schema")
        if tool is not None:
            schema = next(
                (each.get("input_schema") for each in body.get("tools", []) if each.get("name") == tool), None
            )
            if schema is None:
                raise TurnedDownError(f"tool_choice: tool {tool!r} is not among the tools")
        return make_request(self.name, raw, body, system=plain_text(body.get("system", "")), schema=schema, tool=tool)


def _json_object(content: str) -> dict[str, Any] | None:
    """Return what a tool can take as its input, or None for any other text."""
    try:
        value = json.loads(content)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
