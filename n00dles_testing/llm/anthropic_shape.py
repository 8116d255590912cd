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
    Wanted,
    encoded,
    in_pieces,
    plain_text,
    spoken,
)

__all__ = ["AnthropicShape"]


_LAST_VERSION_WITH_SAMPLING = "2023-06-01"
_ERRORS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class AnthropicShape(Shape):
    """`POST /v1/messages`."""

    name = "anthropic"
    path = "/v1/messages"
    id_header = "request-id"
    _STOPS: ClassVar = {"end": "end_turn", "length": "max_tokens", "filter": "refusal", "refusal": "refusal"}

    def answer(self, request: LLMRequest, completion: Completion, serial: str) -> Answer:
        """Write one message, or its events."""
        text, calls = spoken(request, completion)
        content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        for place, call in enumerate(calls):
            tool_id = f"toolu_{serial}_{place}"
            content.append({"type": "tool_use", "id": tool_id, "name": call.name, "input": call.arguments})
        message = {
            "id": f"msg_{serial}",
            "type": "message",
            "role": "assistant",
            "model": request.model,
            "content": content,
            "stop_reason": "tool_use" if calls else self._STOPS[completion.stop],
            "stop_sequence": None,
            "usage": {
                "input_tokens": completion.input_tokens,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": completion.output_tokens,
            },
        }
        if not request.stream:
            return Answer(200, JSON, [encoded(message)])
        return Answer(
            200,
            EVENTS,
            [f"event: {each['type']}\n".encode() + b"data: " + encoded(each) + b"\n\n" for each in _events(message)],
        )

    def error(self, status: int, message: str) -> Answer:
        """Write an error object."""
        kind = _ERRORS.get(status, "api_error" if status >= 500 else "invalid_request_error")  # noqa: PLR2004
        return Answer(status, JSON, [encoded({"type": "error", "error": {"type": kind, "message": message}})])

    def turned_down(self, error: TurnedDownError) -> Answer:
        """Write the script's reason as a text: of JSON, Anthropic's SDK shows all of it, in a single line."""
        if error.unexpected:
            return Answer(error.status, "text/plain; charset=utf-8", [str(error).encode(errors="replace")])
        return self.error(error.status, str(error))

    def _system(self, body: dict[str, Any]) -> str:
        return plain_text(body.get("system", ""))

    def _wanted(self, body: dict[str, Any], headers: Mapping[str, str]) -> Wanted:
        if not isinstance(body.get("max_tokens"), int):
            raise TurnedDownError("max_tokens: Field required")
        sampling = body.keys() & {"temperature", "top_p", "top_k"}
        if sampling and headers.get("anthropic-version") != _LAST_VERSION_WITH_SAMPLING:
            raise TurnedDownError(f"{min(sampling)}: not supported by this anthropic-version")
        output = (body.get("output_config") or {}).get("format") or {}
        tools = {each.get("name"): each.get("input_schema") for each in body.get("tools") or []}
        choice = body.get("tool_choice") or {}
        named = str(choice.get("name")) if choice.get("type") == "tool" else choice.get("type") == "any"
        return Wanted(output.get("schema"), tools, named)


def _events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    usage = message["usage"]
    start = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 0}}
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(message["content"]):
        is_text = block["type"] == "text"
        kind, key = ("text_delta", "text") if is_text else ("input_json_delta", "partial_json")
        content = block["text"] if is_text else json.dumps(block["input"], ensure_ascii=False)
        empty = {**block, "text": ""} if is_text else {**block, "input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for piece in in_pieces(content):
            yield {"type": "content_block_delta", "index": index, "delta": {"type": kind, key: piece}}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage["output_tokens"]}}
    yield {"type": "message_stop"}
