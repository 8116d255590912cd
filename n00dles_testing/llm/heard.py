"""A provider's real response, read back into the `Reply` that would have it sent again.

Of a response only what a script can say is kept: text, tool calls, stop reason, tokens. Its headers, with cookies and
the names of organisations and projects, are not among that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any

__all__ = ["heard"]

_STOPS = {
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "content_filter": "filter",
    "refusal": "refusal",
}
_LAST_EVENTS = ("response.completed", "response.incomplete")


def heard(shape: str, status: int, body: str, *, streamed: bool) -> dict[str, Any]:
    """Return the fields of the `Reply` for a response to a request of this shape.

    Raises `ValueError` for a response that is not whole, or not what the provider documents.
    """
    try:
        if status != HTTPStatus.OK:
            return {"status": status, "text": _message(body)}
        return _READERS[shape, streamed](body)
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"a response of {shape!r} could not be read: {error!r}") from error


def _message(body: str) -> str:
    try:
        said = json.loads(body)
    except ValueError:
        return body[:200]
    error = said.get("error") if isinstance(said, dict) else None
    return str(error.get("message", "")) if isinstance(error, dict) else body[:200]


def _events(body: str) -> Iterator[dict[str, Any]]:
    for line in body.splitlines():
        data = line.removeprefix("data:").strip()
        if line.startswith("data:") and data != "[DONE]":
            yield json.loads(data)


def _reply(
    texts: list[str], calls: list[tuple[str, Any]], stop: str | None, tokens: tuple[Any, Any], refusal: str = ""
) -> dict[str, Any]:
    kind = "refusal" if refusal else _STOPS.get(stop or "", "end")
    reply: dict[str, Any] = {"text": refusal or "".join(texts), "stop": kind}
    if calls:
        reply["tool_calls"] = [{"name": name, "arguments": _object(arguments)} for name, arguments in calls]
    for name, count in zip(("input_tokens", "output_tokens"), tokens, strict=True):
        if count is not None:
            reply[name] = count
    return reply


def _check_ended(end: object) -> None:
    if not end:
        raise ValueError("the stream broke off, or its client stopped reading")


def _object(arguments: Any) -> Any:
    return json.loads(arguments or "{}") if isinstance(arguments, str) else arguments


def _chat(body: str) -> dict[str, Any]:
    said = json.loads(body)
    choice, usage = said["choices"][0], said.get("usage") or {}
    message = choice["message"]
    calls = [(each["function"]["name"], each["function"]["arguments"]) for each in message.get("tool_calls") or ()]
    tokens = usage.get("prompt_tokens"), usage.get("completion_tokens")
    return _reply([message.get("content") or ""], calls, choice["finish_reason"], tokens, message.get("refusal") or "")


def _chat_stream(body: str) -> dict[str, Any]:
    texts: list[str] = []
    refusals: list[str] = []
    calls: dict[int, list[str]] = {}
    usage: Mapping[str, Any] = {}
    stop = None
    for event in _events(body):
        usage = event.get("usage") or usage
        for choice in event.get("choices") or ():
            delta = choice.get("delta") or {}
            texts.append(delta.get("content") or "")
            refusals.append(delta.get("refusal") or "")
            stop = choice.get("finish_reason") or stop
            for part in delta.get("tool_calls") or ():
                call = calls.setdefault(part["index"], ["", ""])
                call[0] += part["function"].get("name") or ""
                call[1] += part["function"].get("arguments") or ""
    _check_ended(stop)
    tokens = usage.get("prompt_tokens"), usage.get("completion_tokens")
    return _reply(texts, [(name, arguments) for name, arguments in calls.values()], stop, tokens, "".join(refusals))


def _response(said: Mapping[str, Any]) -> dict[str, Any]:
    parts = [part for item in said["output"] if item["type"] == "message" for part in item["content"]]
    calls = [(item["name"], item["arguments"]) for item in said["output"] if item["type"] == "function_call"]
    usage, reason = said.get("usage") or {}, (said.get("incomplete_details") or {}).get("reason")
    return _reply(
        [part["text"] for part in parts if part["type"] == "output_text"],
        calls,
        reason,
        (usage.get("input_tokens"), usage.get("output_tokens")),
        "".join(part["refusal"] for part in parts if part["type"] == "refusal"),
    )


def _response_stream(body: str) -> dict[str, Any]:
    said = [event["response"] for event in _events(body) if event["type"] in _LAST_EVENTS]
    _check_ended(said)
    return _response(said[-1])


def _message_of(content: list[dict[str, Any]], stop: str | None, usage: Mapping[str, Any]) -> dict[str, Any]:
    texts = [block["text"] for block in content if block["type"] == "text"]
    calls = [(block["name"], block["input"]) for block in content if block["type"] == "tool_use"]
    refusal = "".join(texts) if stop == "refusal" else ""
    return _reply(texts, calls, stop, (usage.get("input_tokens"), usage.get("output_tokens")), refusal)


def _messages(body: str) -> dict[str, Any]:
    said = json.loads(body)
    return _message_of(said["content"], said["stop_reason"], said["usage"])


def _messages_stream(body: str) -> dict[str, Any]:
    blocks: dict[int, dict[str, Any]] = {}
    usage: dict[str, Any] = {}
    stop = None
    for event in _events(body):
        match event["type"]:
            case "message_start":
                usage.update(event["message"]["usage"])
            case "content_block_start":
                blocks[event["index"]] = {**event["content_block"], "json": ""}
            case "content_block_delta":
                block, delta = blocks[event["index"]], event["delta"]
                block["json"] += delta.get("partial_json", "")
                if "text" in delta:
                    block["text"] += delta["text"]
            case "message_delta":
                stop = event["delta"].get("stop_reason")
                usage.update(event.get("usage") or {})
    _check_ended(stop)
    for block in blocks.values():
        if block["type"] == "tool_use":
            block["input"] = _object(block["json"])
    return _message_of(list(blocks.values()), stop, usage)


_READERS: dict[tuple[str, bool], Callable[[str], dict[str, Any]]] = {
    ("openai", False): _chat,
    ("openai", True): _chat_stream,
    ("openai-responses", False): lambda body: _response(json.loads(body)),
    ("openai-responses", True): _response_stream,
    ("anthropic", False): _messages,
    ("anthropic", True): _messages_stream,
}
