"""What n00dles needs from a model: one call, one answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from .response import LLMResponse

__all__ = ["Provider"]


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
