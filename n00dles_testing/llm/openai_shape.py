"""OpenAI's chat completions, as they go over the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from .calls import ToolCall
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
    spoken,
)

__all__ = ["OpenAIShape", "forced_tool", "openai_error"]


class OpenAIShape(Shape):
    """`POST …/chat/completions`, of OpenAI and of all servers that speak like it."""

    name = "openai"
    path = "/chat/completions"
    _STOPS: ClassVar = {"end": "stop", "length": "length", "filter": "content_filter", "refusal": "stop"}

    def answer(self, request: LLMRequest, completion: Completion, serial: str) -> Answer:
        """Write one completion, or its chunks."""
        head = {"id": f"chatcmpl-{serial}", "created": 0, "model": request.model}
        tokens = (completion.input_tokens, completion.output_tokens)
        usage = {
            "prompt_tokens": tokens[0],
            "completion_tokens": tokens[1],
            "total_tokens": sum(tokens),
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
        }
        text, calls = spoken(request, completion)
        tool_calls = [_tool_call(call, f"call_{serial}_{place}") for place, call in enumerate(calls)]
        stop = "tool_calls" if calls else self._STOPS[completion.stop]
        says = "refusal" if completion.stop == "refusal" else "content"
        if request.stream:
            asked = (request.body.get("stream_options") or {}).get("include_usage")
            deltas = [*_deltas(says, text, tool_calls), {}]
            choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
            choices[-1]["finish_reason"] = stop
            parts: list[dict[str, Any]] = [{"choices": [choice]} for choice in choices]
            parts += [{"choices": [], "usage": usage}] if asked else []
            chunks = [encoded({**head, "object": "chat.completion.chunk", **part}) for part in parts]
            return Answer(200, EVENTS, [*(b"data: " + chunk + b"\n\n" for chunk in chunks), b"data: [DONE]\n\n"])
        message: dict[str, Any] = {
            "role": "assistant",
            "content": None,
            "refusal": None,
            says: text if text or not calls else None,
        }
        if tool_calls:
            message["tool_calls"] = tool_calls
        choice = {"index": 0, "message": message, "finish_reason": stop, "logprobs": None}
        return Answer(200, JSON, [encoded({**head, "object": "chat.completion", "choices": [choice], "usage": usage})])

    def error(self, status: int, message: str) -> Answer:
        """Write an error object."""
        return openai_error(status, message)

    def _wanted(self, body: dict[str, Any], headers: Mapping[str, str]) -> Wanted:
        if isinstance(number := body.get("n"), int) and number > 1:
            raise TurnedDownError(
                f"the request has n={number}, and a script gives one answer to a request: ask once for each",
                unexpected=True,
            )
        wanted = body.get("response_format") or {}
        schema = {"type": "object"} if wanted.get("type") == "json_object" else None
        if wanted.get("type") == "json_schema":
            schema = wanted.get("json_schema", {}).get("schema")
        functions = [each["function"] for each in body.get("tools") or [] if isinstance(each.get("function"), dict)]
        choice = body.get("tool_choice")
        if isinstance(choice, dict):
            choice = choice.get("function")
        return Wanted(schema, {each.get("name"): each.get("parameters") for each in functions}, forced_tool(choice))


def openai_error(status: int, message: str) -> Answer:
    """Write an error object as both of OpenAI's APIs have it."""
    kind, code = _ERRORS.get(status, ("server_error" if status >= 500 else "invalid_request_error", None))  # noqa: PLR2004
    body = {"message": message, "type": kind, "param": None, "code": code}
    return Answer(status, JSON, [encoded({"error": body})])


_ERRORS = {401: ("invalid_request_error", "invalid_api_key"), 429: ("requests", "rate_limit_exceeded")}


def forced_tool(choice: Any) -> str | bool:
    """Read which tool must be called: its name, or `True` for any, or `False`."""
    return str(choice.get("name")) if isinstance(choice, dict) and "name" in choice else choice == "required"


def _tool_call(call: ToolCall, call_id: str) -> dict[str, Any]:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {"id": call_id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _deltas(says: str, text: str, tool_calls: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", says: "" if text or not tool_calls else None}
    for piece in in_pieces(text):
        yield {says: piece}
    for place, call in enumerate(tool_calls):
        function = call["function"]
        yield {"tool_calls": [{**call, "index": place, "function": {**function, "arguments": ""}}]}
        for piece in in_pieces(function["arguments"]):
            yield {"tool_calls": [{"index": place, "function": {"arguments": piece}}]}
