"""OpenAI's chat completions, and every server that speaks them, through the official SDK."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from ..errors import AnswerError, ConfigurationError
from .loop_clients import LoopClients
from .response import LLMResponse
from .schemas import AnswerSchema
from .sdk import refuse_http_client, require_model, require_sdk, with_call_headers

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletion

__all__ = ["OpenAIProvider"]


class OpenAIProvider:
    """Calls chat completions. Key and base URL come from `OPENAI_API_KEY` and `OPENAI_BASE_URL`, as in the SDK.

    `client_options` go to `openai.AsyncOpenAI`: `api_key`, `base_url`, `timeout` (seconds), `organization`, … The SDK's
    own retries are off, since the executor retries. One provider serves any number of event loops and threads.
    """

    name = "openai"

    def __init__(self, **client_options: Any) -> None:
        refuse_http_client(type(self).__name__, client_options)
        self._options = client_options
        self._clients: LoopClients[AsyncOpenAI] = LoopClients(
            "OPENAI_", self._make_client, lambda client: client.close()
        )

    def check(self) -> None:
        """Raise `ConfigurationError` if the SDK or the key is missing. Cheap, and sends nothing."""
        require_sdk("openai")
        if not (self._options.get("api_key") or os.environ.get("OPENAI_API_KEY")):
            self._make_client()  # the SDK knows other ways to sign in; it has the last word

    def preload(self) -> None:
        """Import the SDK now, for a process that is going to fork: its children then need not.

        Raises `ConfigurationError` if the SDK is missing.
        """
        require_sdk("openai")
        from openai import AsyncOpenAI

        _ = AsyncOpenAI(api_key="unused").chat.completions  # parts of the SDK are imported when first touched

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

        Other `options` are parameters of the SDK's `chat.completions.create`. Raises `ConfigurationError` before any
        request if SDK, key or model is missing, `AnswerError` for an answer that is cut off, refused, filtered or
        empty, and otherwise whatever the SDK raises.
        """
        require_model(self.name, model)
        self.check()
        shape = None if schema is None else AnswerSchema.of(schema, _enforces)
        request: dict[str, Any] = {"model": model.removeprefix("openai/"), "messages": _messages(prompt, system)}
        if temperature is not None:
            request["temperature"] = temperature
        if max_tokens is not None:
            request["max_completion_tokens"] = max_tokens  # reasoning models refuse the older max_tokens
        if shape is not None:
            request["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": shape.name, "schema": shape.schema, "strict": shape.closed},
            }
        started = time.perf_counter()
        async with self._clients.borrow() as client:
            completion: ChatCompletion = await client.chat.completions.create(**request, **with_call_headers(options))
        response = _response(completion, model, (time.perf_counter() - started) * 1000)
        return response if shape is None else response.model_copy(update={"content": shape.unwrap(response.content)})

    async def aclose(self) -> None:
        """Close the running event loop's connections; the next call opens new ones. May be called at any time."""
        await self._clients.aclose()

    def _make_client(self) -> AsyncOpenAI:
        from openai import AsyncOpenAI, OpenAIError  # here, since import n00dles must stay light

        try:
            return AsyncOpenAI(**{**self._options, "max_retries": 0})
        except OpenAIError as error:
            raise ConfigurationError(
                f"OpenAI cannot be called: {error} Set OPENAI_API_KEY, or pass provider=OpenAIProvider(api_key=…)."
            ) from error


def _enforces(keyword: str, value: Any) -> bool:
    """Say whether the API takes this keyword in a schema that it is strict about."""
    if keyword == "format":
        return value in _FORMATS
    if keyword == "pattern":
        return "(?" not in value  # it knows no look-around
    return keyword in _KEYWORDS


_FORMATS = {"date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
_KEYWORDS = {
    *("multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("minItems", "maxItems"),
}


def _messages(prompt: str, system: str) -> list[dict[str, str]]:
    messages = [{"role": "system", "content": system}] if system else []
    return [*messages, {"role": "user", "content": prompt}]


def _response(completion: ChatCompletion, model: str, latency_ms: float) -> LLMResponse:
    usage = getattr(completion, "usage", None)
    tokens = {
        "input_tokens": usage.prompt_tokens if usage else 0,
        "output_tokens": usage.completion_tokens if usage else 0,
    }

    def unusable(reason: str, message: str) -> AnswerError:
        return AnswerError(message, reason=reason, model=model, provider="openai", **tokens)

    if not getattr(completion, "choices", None):
        raise unusable("malformed", f"answered without choices ({str(completion)[:200]!r}). Check OPENAI_BASE_URL.")
    choice = completion.choices[0]
    content = choice.message.content
    if choice.message.refusal:
        raise unusable("refused", f"refused to answer: {choice.message.refusal}")
    if choice.finish_reason == "content_filter":
        raise unusable("filtered", "had its answer removed by the provider's content filter. Change the prompt.")
    if choice.finish_reason == "length":
        raise unusable(
            "truncated",
            f"had its answer cut off after {tokens['output_tokens']} tokens. Raise max_tokens, or ask for less.",
        )
    if not content:
        raise unusable("empty", f"gave an empty answer (finish_reason {choice.finish_reason!r}).")
    return LLMResponse(
        content=content, model=completion.model or model, latency_ms=latency_ms, provider="openai", **tokens
    )
