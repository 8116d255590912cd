"""OpenAI's responses, as they go over the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .openai_shape import forced_tool, openai_error
from .shapes import EVENTS, JSON, Answer, Completion, LLMRequest, Shape, Wanted, encoded, in_pieces, spoken

__all__ = ["ResponsesShape"]

_REASONS = {"length": "max_output_tokens", "filter": "content_filter"}


class ResponsesShape(Shape):
    """`POST …/responses`."""

    name = "openai-responses"
    path = "/responses"
    conversation = "input"

    def answer(self, request: LLMRequest, completion: Completion, serial: str) -> Answer:
        """Write one response, or its events."""
        items = list(_items(request, completion, serial))
        reason = _REASONS.get(completion.stop)
        tokens = (completion.input_tokens, completion.output_tokens)
        usage = {
            "input_tokens": tokens[0],
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": tokens[1],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": sum(tokens),
        }
        response = {
            "id": f"resp_{serial}",
            "object": "response",
            "created_at": 0,
            "status": "incomplete" if reason else "completed",
            "error": None,
            "incomplete_details": {"reason": reason} if reason else None,
            "instructions": request.body.get("instructions"),
            "model": request.model,
            "output": items,
            "parallel_tool_calls": True,
            "previous_response_id": request.body.get("previous_response_id"),
            "tool_choice": request.body.get("tool_choice") or "auto",
            "tools": request.body.get("tools") or [],
            "text": request.body.get("text") or {"format": {"type": "text"}},
            "metadata": {},
            "usage": usage,
        }
        if not request.stream:
            return Answer(200, JSON, [encoded(response)])
        events = [{**event, "sequence_number": number} for number, event in enumerate(_events(response))]
        return Answer(
            200, EVENTS, [f"event: {each['type']}\n".encode() + b"data: " + encoded(each) + b"\n\n" for each in events]
        )

    def error(self, status: int, message: str) -> Answer:
        """Write an error object."""
        return openai_error(status, message)

    def _system(self, body: dict[str, Any]) -> str:
        instructions = body.get("instructions")
        return instructions if isinstance(instructions, str) else ""

    def _wanted(self, body: dict[str, Any], headers: Mapping[str, str]) -> Wanted:
        wanted = (body.get("text") or {}).get("format") or {}
        schema = {"type": "object"} if wanted.get("type") == "json_object" else wanted.get("schema")
        tools = {each["name"]: each.get("parameters") for each in body.get("tools") or [] if "name" in each}
        return Wanted(schema, tools, forced_tool(body.get("tool_choice")))


def _items(request: LLMRequest, completion: Completion, serial: str) -> Iterator[dict[str, Any]]:
    text, calls = spoken(request, completion)
    status = "incomplete" if completion.stop in _REASONS else "completed"
    if text or not calls:
        part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        if completion.stop == "refusal":
            part = {"type": "refusal", "refusal": text}
        message = {"id": f"msg_{serial}", "type": "message", "role": "assistant", "status": status}
        yield {**message, "content": [part]}
    for place, call in enumerate(calls):
        yield {
            "id": f"fc_{serial}_{place}",
            "type": "function_call",
            "call_id": f"call_{serial}_{place}",
            "name": call.name,
            "arguments": json.dumps(call.arguments, ensure_ascii=False),
            "status": status,
        }


def _events(response: dict[str, Any]) -> Iterator[dict[str, Any]]:
    begun = {**response, "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(response["output"]):
        empty: dict[str, Any] = {"content": []} if item["type"] == "message" else {"arguments": ""}
        yield {
            "type": "response.output_item.added",
            "output_index": index,
            "item": {**item, **empty, "status": "in_progress"},
        }
        place = {"item_id": item["id"], "output_index": index}
        yield from _message_events(item, place) if item["type"] == "message" else _call_events(item, place)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{response['status']}", "response": response}


def _message_events(item: dict[str, Any], place: dict[str, Any]) -> Iterator[dict[str, Any]]:
    (part,) = item["content"]
    kind, key = ("response.refusal", "refusal") if part["type"] == "refusal" else ("response.output_text", "text")
    place = {**place, "content_index": 0}
    more: dict[str, Any] = {} if key == "refusal" else {"logprobs": []}
    yield {"type": "response.content_part.added", **place, "part": {**part, key: ""}}
    for piece in in_pieces(part[key]):
        yield {"type": f"{kind}.delta", **place, **more, "delta": piece}
    yield {"type": f"{kind}.done", **place, **more, key: part[key]}
    yield {"type": "response.content_part.done", **place, "part": part}


def _call_events(item: dict[str, Any], place: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for piece in in_pieces(item["arguments"]):
        yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
    yield {
        "type": "response.function_call_arguments.done",
        **place,
        "name": item["name"],
        "arguments": item["arguments"],
    }
