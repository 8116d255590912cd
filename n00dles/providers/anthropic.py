"""Anthropic's messages, through the official SDK."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

from ..errors import AnswerError, ConfigurationError
from .loop_clients import LoopClients
from .response import LLMResponse
from .schemas import AnswerSchema
from .sdk import refuse_http_client, require_model, require_sdk, with_call_headers

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types import Message

__all__ = ["DEFAULT_MAX_TOKENS", "AnthropicProvider"]

DEFAULT_MAX_TOKENS = 8192
"""The limit of an answer where the agent sets none: the API demands one, and all current models take this one."""

_ANSWER_TOOL = "give_answer"
_LAST_VERSION_WITH_TEMPERATURE = "2023-06-01"


class AnthropicProvider:
    """Calls messages. Key and base URL come from `ANTHROPIC_API_KEY` and `ANTHROPIC_BASE_URL`, as in the SDK.

    `client_options` go to `anthropic.AsyncAnthropic`: `api_key`, `base_url`, `timeout` (seconds), … The SDK's own
    retries are off, since the executor retries. One provider serves any number of event loops and threads.
    """

    name = "anthropic"

    def __init__(self, **client_options: Any) -> None:
        refuse_http_client(type(self).__name__, client_options)
        self._options = client_options
        self._clients: LoopClients[AsyncAnthropic] = LoopClients(
            "ANTHROPIC_", self._make_client, lambda client: client.close()
        )

    def check(self) -> None:
        """Raise `ConfigurationError` if the SDK or the key is missing. Cheap, and sends nothing."""
        require_sdk("anthropic")
        if not (self._options.get("api_key") or os.environ.get("ANTHROPIC_API_KEY")):
            self._make_client()  # the SDK knows other ways to sign in; it has the last word

    def preload(self) -> None:
        """Import the SDK now, for a process that is going to fork: its children then need not.

        Raises `ConfigurationError` if the SDK is missing.
        """
        require_sdk("anthropic")
        from anthropic import AsyncAnthropic

        _ = AsyncAnthropic(api_key="unused").messages  # parts of the SDK are imported when first touched

    async def complete(
        self,
        prompt: str,
        system: str,
        *,
        model: str = "",
        schema: dict[str, Any] | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        **options: Any,
    ) -> LLMResponse:
        """Send one request and return its answer; with `schema`, an answer that is JSON of that schema.

        Without `max_tokens` the limit is `DEFAULT_MAX_TOKENS`. The SDK has no parameter for `temperature` any more;
        a call with one sends it past the SDK and asks for the API version that had it, which a model may refuse. Other
        `options` are parameters of the SDK's `messages.create`.

        Raises `ConfigurationError` before any request if SDK, key or model is missing, `AnswerError` for an answer that
        is cut off, refused or empty, and otherwise whatever the SDK raises.
        """
        require_model(self.name, model)
        self.check()
        request: dict[str, Any] = {
            "model": model.removeprefix("anthropic/"),
            "max_tokens": DEFAULT_MAX_TOKENS if max_tokens is None else max_tokens,
            "messages": [{"role": "user", "content": prompt}],
        }
        if system:
            request["system"] = system
        if temperature is not None:
            options = _with_temperature(temperature, options)
        shape = None if schema is None else AnswerSchema.of(schema, _enforces)
        if shape is not None:
            request |= _structured(shape)
        started = time.perf_counter()
        async with self._clients.borrow() as client:
            message: Message = await client.messages.create(**request, **with_call_headers(options))
        response = _response(message, model, (time.perf_counter() - started) * 1000)
        return response if shape is None else response.model_copy(update={"content": shape.unwrap(response.content)})

    async def aclose(self) -> None:
        """Close the running event loop's connections; the next call opens new ones. May be called at any time."""
        await self._clients.aclose()

    def _make_client(self) -> AsyncAnthropic:
        from anthropic import AnthropicError, AsyncAnthropic  # here, since import n00dles must stay light

        advice = "Set ANTHROPIC_API_KEY, or pass provider=AnthropicProvider(api_key=…)."
        try:
            client = AsyncAnthropic(**{**self._options, "max_retries": 0})
        except (AnthropicError, ValueError) as error:
            raise ConfigurationError(f"Anthropic cannot be called: {error} {advice}") from error
        if not (client.api_key or client.auth_token or client.credentials or self._options.get("default_headers")):
            raise ConfigurationError(f"Anthropic cannot be called: no API key is set. {advice}")
        return client


def _with_temperature(temperature: float, options: dict[str, Any]) -> dict[str, Any]:
    """Send a temperature past the SDK, which has no parameter for it any more."""
    return {
        **options,
        "extra_body": {"temperature": temperature, **(options.get("extra_body") or {})},
        "extra_headers": {
            "anthropic-version": _LAST_VERSION_WITH_TEMPERATURE,
            **(options.get("extra_headers") or {}),
        },
    }


def _enforces(keyword: str, value: Any) -> bool:
    """Say whether the API's structured output takes this keyword."""
    return keyword == "format" and value in _FORMATS


_FORMATS = {"date-time", "date", "time", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}


def _structured(shape: AnswerSchema) -> dict[str, Any]:
    """Ask for JSON: of the API's structured output where it takes the schema, else as the input of a tool.

    The structured output takes closed schemas without recursion; a tool takes every schema and enforces none.
    """
    if shape.closed and not shape.recursive:
        return {"output_config": {"format": {"type": "json_schema", "schema": shape.schema}}}
    tool = {"name": _ANSWER_TOOL, "description": "Give the answer.", "input_schema": shape.schema}
    return {"tools": [tool], "tool_choice": {"type": "tool", "name": _ANSWER_TOOL}}


def _response(message: Message, model: str, latency_ms: float) -> LLMResponse:
    usage = getattr(message, "usage", None)
    cached = (usage.cache_creation_input_tokens or 0) + (usage.cache_read_input_tokens or 0) if usage else 0
    tokens = {
        "input_tokens": usage.input_tokens + cached if usage else 0,
        "output_tokens": usage.output_tokens if usage else 0,
    }

    def unusable(reason: str, what: str) -> AnswerError:
        return AnswerError(what, reason=reason, model=model, provider="anthropic", **tokens)

    if not isinstance(getattr(message, "content", None), list):
        raise unusable("malformed", f"answered without content ({str(message)[:200]!r}). Check ANTHROPIC_BASE_URL.")
    content = "".join(
        block.text if block.type == "text" else json.dumps(block.input, ensure_ascii=False)
        for block in message.content
        if block.type == "text" or (block.type == "tool_use" and block.name == _ANSWER_TOOL)
    )
    if message.stop_reason == "refusal":
        raise unusable("refused", f"refused to answer: {content or 'it gave no reason'}")
    if message.stop_reason in ("max_tokens", "model_context_window_exceeded"):
        raise unusable(
            "truncated",
            f"had its answer cut off after {tokens['output_tokens']} tokens ({message.stop_reason}). Raise max_tokens, "
            "or ask for less.",
        )
    if not content:
        raise unusable("empty", f"gave an empty answer (stop_reason {message.stop_reason!r}).")
    return LLMResponse(
        content=content, model=message.model or model, latency_ms=latency_ms, provider="anthropic", **tokens
    )
