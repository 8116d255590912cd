"""The answer of a model. This module defines a Pydantic model, which brings half of pydantic with it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["LLMResponse"]


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
