"""The two wire formats: what a request says, and how a reply is written.

A shape knows nothing of scripts, journals or connections. `answer` gives the bytes in the pieces in which a provider
would send them: one for a plain reply, one an event for a streamed one.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

__all__ = ["SHAPES", "Answer", "BadRequestError", "Completion", "LLMRequest", "Shape"]

_JSON = "application/json"
_EVENTS = "text/event-stream"


class BadRequestError(Exception):
    """A request that a provider would turn down; `status` is the HTTP status."""

    def __init__(self, message: str, status: int = 400) -> None:
        self.status = status
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class LLMRequest:
    """What a request asks for, whatever its shape. `prompt` is the last message, `schema` what the answer must fit."""

    shape: str
    body: dict[str, Any]
    canonical: str
    body_sha256: str
    model: str
    system: str
    prompt: str
    schema: dict[str, Any] | None
    tool: str | None
    stream: bool

    @property
    def sha256(self) -> str:
        """The hash of the canonical body."""
        return hashlib.sha256(self.canonical.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def tokens(self) -> int:
        """The tokens of all its text, the schema included."""
        return count_tokens(self.canonical)


@dataclass(frozen=True, slots=True)
class Completion:
    """What the model says, before it is written in a shape. `stop` is as in `Reply`."""

    text: str
    stop: str
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP response, ready to be sent. More than one piece: streamed."""

    status: int
    content_type: str
    pieces: list[bytes] = field(default_factory=list)
    headers: Mapping[str, str] = field(default_factory=dict)


def count_tokens(text: str) -> int:
    """Return how many tokens a text counts for: a word or a sign each. Not what any model counts, but exact."""
    return len(re.findall(r"\w+|[^\w\s]", text))


class Shape(ABC):
    """One provider's HTTP API."""

    name: ClassVar[str]
    path: ClassVar[str]

    def read(self, raw: bytes, headers: Mapping[str, str]) -> LLMRequest:
        """Parse a request. Raises `BadRequestError` for one that the provider would turn down."""
        if not self._has_key(headers):
            raise BadRequestError("no API key was sent", 401)
        try:
            body = json.loads(raw)
        except ValueError as error:
            raise BadRequestError(f"the body is not JSON: {error}") from None
        if not isinstance(body, dict) or not isinstance(body.get("messages"), list) or not body["messages"]:
            raise BadRequestError("the body has no 'messages'")
        if not isinstance(body.get("model"), str) or not body["model"]:
            raise BadRequestError("the body has no 'model'")
        return self._request(raw, body)

    @abstractmethod
    def answer(self, request: LLMRequest, completion: Completion, serial: str) -> Answer:
        """Write `completion` as the provider would; `serial` makes up the id."""

    @abstractmethod
    def error(self, status: int, message: str) -> Answer:
        """Write an error as the provider would."""

    @abstractmethod
    def _has_key(self, headers: Mapping[str, str]) -> bool: ...

    @abstractmethod
    def _request(self, raw: bytes, body: dict[str, Any]) -> LLMRequest: ...


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
            return Answer(200, _EVENTS, [*(b"data: " + _bytes(each) + b"\n\n" for each in chunks), b"data: [DONE]\n\n"])
        says = "refusal" if completion.stop == "refusal" else "content"
        message = {"role": "assistant", "content": None, "refusal": None, says: completion.text}
        choice = {"index": 0, "message": message, "finish_reason": self._STOPS[completion.stop], "logprobs": None}
        return Answer(200, _JSON, [_bytes({**head, "object": "chat.completion", "choices": [choice], "usage": usage})])

    def _parts(self, completion: Completion) -> Iterator[dict[str, Any]]:
        says = "refusal" if completion.stop == "refusal" else "content"
        deltas = [{"role": "assistant", says: ""}, *({says: piece} for piece in _in_pieces(completion.text)), {}]
        for place, delta in enumerate(deltas):
            last = place == len(deltas) - 1
            stop = self._STOPS[completion.stop] if last else None
            yield {"choices": [{"index": 0, "delta": delta, "finish_reason": stop}]}

    def error(self, status: int, message: str) -> Answer:
        """Write an error object."""
        body = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
        return Answer(status, _JSON, [_bytes({"error": body})])

    def _has_key(self, headers: Mapping[str, str]) -> bool:
        return headers.get("authorization", "").removeprefix("Bearer").strip() != ""

    def _request(self, raw: bytes, body: dict[str, Any]) -> LLMRequest:
        messages = body["messages"]
        wanted = body.get("response_format") or {}
        schema = {"type": "object"} if wanted.get("type") == "json_object" else None
        if wanted.get("type") == "json_schema":
            schema = wanted.get("json_schema", {}).get("schema")
        return _request(
            self.name,
            raw,
            body,
            system="\n".join(_text(each) for each in messages if each.get("role") in ("system", "developer")),
            schema=schema,
        )


class AnthropicShape(Shape):
    """`POST /v1/messages`."""

    name = "anthropic"
    path = "/v1/messages"
    _STOPS: ClassVar = {"end": "end_turn", "length": "max_tokens", "filter": "refusal", "refusal": "refusal"}

    def answer(self, request: LLMRequest, completion: Completion, serial: str) -> Answer:
        """Write one message, or its events."""
        content, stop = completion.text, self._STOPS[completion.stop]
        block: dict[str, Any] = {"type": "text", "text": content}
        if request.tool is not None and completion.stop == "end":
            block = {"type": "tool_use", "id": f"toolu_{serial}", "name": request.tool, "input": json.loads(content)}
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
            return Answer(200, _JSON, [_bytes(message)])
        events = self._events(message, block, content)
        return Answer(
            200, _EVENTS, [f"event: {each['type']}\n".encode() + b"data: " + _bytes(each) + b"\n\n" for each in events]
        )

    def _events(self, message: dict[str, Any], block: dict[str, Any], content: str) -> Iterator[dict[str, Any]]:
        usage = message["usage"]
        start = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 0}}
        yield {"type": "message_start", "message": start}
        if message["content"]:
            empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
            kind, key = ("text_delta", "text") if block["type"] == "text" else ("input_json_delta", "partial_json")
            yield {"type": "content_block_start", "index": 0, "content_block": empty}
            for piece in _in_pieces(content):
                yield {"type": "content_block_delta", "index": 0, "delta": {"type": kind, key: piece}}
            yield {"type": "content_block_stop", "index": 0}
        delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage["output_tokens"]}}
        yield {"type": "message_stop"}

    def error(self, status: int, message: str) -> Answer:
        """Write an error object."""
        kind = "authentication_error" if status == 401 else "invalid_request_error"  # noqa: PLR2004
        return Answer(status, _JSON, [_bytes({"type": "error", "error": {"type": kind, "message": message}})])

    def _has_key(self, headers: Mapping[str, str]) -> bool:
        return bool(headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer").strip())

    def _request(self, raw: bytes, body: dict[str, Any]) -> LLMRequest:
        if not isinstance(body.get("max_tokens"), int):
            raise BadRequestError("max_tokens: Field required")
        output = (body.get("output_config") or {}).get("format") or {}
        choice = body.get("tool_choice") or {}
        tool = choice.get("name") if choice.get("type") == "tool" else None
        schema = output.get("schema")
        if tool is not None:
            schema = next(
                (each.get("input_schema") for each in body.get("tools", []) if each.get("name") == tool), None
            )
            if schema is None:
                raise BadRequestError(f"tool_choice: tool {tool!r} is not among the tools")
        return _request(self.name, raw, body, system=_plain(body.get("system", "")), schema=schema, tool=tool)


SHAPES: dict[str, Shape] = {shape.path: shape for shape in (OpenAIShape(), AnthropicShape())}
"""The shapes by the path that they answer."""


def _request(
    shape: str, raw: bytes, body: dict[str, Any], *, system: str, schema: Any, tool: str | None = None
) -> LLMRequest:
    return LLMRequest(
        shape=shape,
        body=body,
        canonical=json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":")),
        body_sha256=hashlib.sha256(raw).hexdigest(),
        model=body["model"],
        system=system,
        prompt=_text(body["messages"][-1]),
        schema=schema if isinstance(schema, dict) else None,
        tool=tool,
        stream=bool(body.get("stream")),
    )


def _text(message: Any) -> str:
    return _plain(message.get("content", "")) if isinstance(message, dict) else ""


def _plain(content: Any) -> str:
    """Return the text of a message's content: a string, or a list of parts."""
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _in_pieces(content: str) -> list[str]:
    return re.findall(r"\S+\s*|\s+", content)


def _bytes(value: Any) -> bytes:
    return json.dumps(value).encode()
