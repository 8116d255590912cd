"""Who answers: the provider protocol, OpenAI, Anthropic, and the choice between them by model name."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from ..errors import ConfigurationError
from .base import Provider

if TYPE_CHECKING:
    from .anthropic import AnthropicProvider
    from .openai import OpenAIProvider
    from .response import LLMResponse

__all__ = ["AnthropicProvider", "LLMResponse", "OpenAIProvider", "Provider", "provider_for"]

_OPENAI = re.compile(r"openai/.|gpt-|chatgpt-|o\d|ft:(gpt|o\d)")
_ANTHROPIC = re.compile(r"anthropic/.|claude-")


def provider_for(model: str) -> Provider:
    """Return the provider that serves `model`; the same object for all models of one provider.

    `gpt-…`, `chatgpt-…`, `o3…`, `ft:gpt-…` and `openai/<name>` go to OpenAI, `claude-…` and `anthropic/<name>` to
    Anthropic. Raises `ConfigurationError` for any other name.
    """
    if _OPENAI.match(model):
        return _openai()
    if _ANTHROPIC.match(model):
        return _anthropic()
    raise ConfigurationError(
        f"no provider is known for the model {model!r}. Write openai/{model} or anthropic/{model} to say whose API "
        "serves it, or give the agent one: @agent(model=…, provider=…)."
    )


@cache
def _openai() -> OpenAIProvider:
    from .openai import OpenAIProvider

    return OpenAIProvider()


@cache
def _anthropic() -> AnthropicProvider:
    from .anthropic import AnthropicProvider

    return AnthropicProvider()


def __getattr__(name: str) -> Any:
    # They bring the event loop, or most of pydantic: a module that only defines pipelines needs neither.
    if name == "LLMResponse":
        from .response import LLMResponse

        return LLMResponse
    if name == "AnthropicProvider":
        from .anthropic import AnthropicProvider

        return AnthropicProvider
    if name == "OpenAIProvider":
        from .openai import OpenAIProvider

        return OpenAIProvider
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
