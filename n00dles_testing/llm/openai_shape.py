"""OpenAI's chat completions, as they go over the wire."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from .shapes import EVENTS, JSON, Answer, Completion, LLMRequest, Shape, encoded, in_pieces, make_request, plain_text

__all__ = ["OpenAIShape"]


class OpenAIShape(Shape):
    """`POST /v1/chat/completions`."""

    name = "openai"
    path = "/v1/chat/completions"
    _STOPS: ClassVar = {"end": "stop", "length": "length", "filter": "content_filter", "refusal": "stop"}

    def answer(self, request: LLMRequest, completion: Completion, serial: str) -> Answer:
        """Write one completion, or its chunks."""
        head = {"id": f"chatcmpl-{serial}", "created": 0, "model": request.model}
        tokens = (completion.input_tokens, completion.output_tokens)
        usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
        if request.stream:
            asked = (request.body.get("stream_options") or {}).get("include_usage")
            chunks = [{**head, "object": "chat.completion.chunk", **part} for part in self._parts(completion)]
            chunks += [{**head, "object": "chat.completion.chunk", "choices": [], "usage": usage}] if asked else []
            return Answer(200, EVENTS, [*(b"data: " + encoded(each) + b"\n\n" for each in chunks), b"data: [DONE]\n\n"])
        says = "refusal" if completion.stop == "refusal" else "content"
        message = {"role": "assistant", "content": None, "refusal": None, says: completion.text}
        choice = {"index": 0, "message": message, "finish_reason": self._STOPS[completion.stop], "logprobs": None}
        return Answer(200, JSON, [encoded({**head, "object": "chat.completion", "choices": [choice], "usage": usage})])

    def _parts(self, completion: Completion) -> Iterator[dict[str, Any]]:
        says = "refusal" if completion.stop == "refusal" else "content"
        deltas = [{"role": "assistant", says: ""}, *({says: piece} for piece in in_pieces(completion.text)), {}]
        for place, delta in enumerate(deltas):
            last = place == len(deltas) - 1
            stop = self._STOPS[completion.stop] if last else None
            yield {"choices": [{"index": 0, "delta": delta, "finish_reason": stop}]}

    def error(self, status: int, message: str) -> Answer:
        """Write an error object."""
        body = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
        return Answer(status, JSON, [encoded({"error": body})])

    def _has_key(self, headers: Mapping[str, str]) -> bool:
        return headers.get("authorization", "").removeprefix("Bearer").strip() != ""

    def _request(self, raw: bytes, body: dict[str, Any], headers: Mapping[str, str]) -> LLMRequest:
        messages = body["messages"]
        wanted = body.get("response_format") or {}
        schema = {"type": "object"} if wanted.get("type") == "json_object" else None
        if wanted.get("type") == "json_schema":
            schema = wanted.get("json_schema", {}).get("schema")
        return make_request(
            self.name,
            raw,
            body,
            system="\n".join(
                plain_text(each.get("content")) for each in messages if each.get("role") in ("system", "developer")
            ),
            schema=schema,
        )
