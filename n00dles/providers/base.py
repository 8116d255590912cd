"""What n00dles needs from a model: one call, one answer."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict

__all__ = ["LLMResponse", "Provider"]


class LLMResponse(BaseModel):
    """The answer of a model. Tokens are those that the provider bills; `latency_ms` is wall time of the call."""

    # Its schema is built with the first answer, not with `import n00dles`.
    model_config = ConfigDict(defer_build=True)

    content: str
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    latency_ms: float = 0.0
    provider: str = ""


@runtime_checkable
class Provider(Protocol):
    """Anything that turns a prompt into an answer; pass one as `@agent(model=…, provider=…)`.

    `kwargs` holds `model`, `temperature` and `max_tokens` where they are set, and `schema`, a JSON schema, when the
    answer must be JSON. A provider knows nothing of agents, retries or checkpoints. It makes one request: retrying is
    the executor's business, so an SDK's own retries must be off.
    """

    async def complete(self, prompt: str, system: str, **kwargs: Any) -> LLMResponse:
        """Send one request and return its answer; raise whatever the SDK raises."""
        ...
