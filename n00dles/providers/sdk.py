"""What must be so before a provider can be called."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from ..errors import ConfigurationError
from ..idempotency import current_agent, current_idempotency_key, current_node

__all__ = ["refuse_http_client", "require_model", "require_sdk", "with_call_headers"]


def require_sdk(name: str) -> None:
    """Raise `ConfigurationError` if the SDK `name` is not installed. It is not imported."""
    if importlib.util.find_spec(name) is None:
        raise ConfigurationError(
            f"the {name} SDK is not installed, and an agent's model needs it. "
            f'Install it: pip install "n00dles-testing[{name}]"'
        )


def require_model(provider: str, model: str) -> None:
    """Raise `ConfigurationError` if no model is named."""
    if not model:
        raise ConfigurationError(f"the {provider} provider was called without a model; name one: @agent(model=…)")


def refuse_http_client(provider: str, options: Mapping[str, Any]) -> None:
    """Raise `ConfigurationError` for an HTTP client among the options of the SDK's client."""
    if "http_client" in options:
        raise ConfigurationError(
            f"{provider} takes no http_client: its connections belong to one event loop, and each run has its own. "
            "Pass base_url, timeout or default_headers instead."
        )


def with_call_headers(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of an SDK call with the node's idempotency key in its header, unless the caller has set one.

    While `N00DLES_LLM_CONTROL` is set, as the fake server of `n00dles_testing` has it, the node's name goes along in
    `N00dles-Node`, and that of a fallback which is called for it in `N00dles-Agent`, percent-encoded. A real provider
    is told nothing of it.
    """
    key, node = current_idempotency_key(), current_node()
    if key is None or node is None:
        return options
    headers = {"Idempotency-Key": key}
    if "N00DLES_LLM_CONTROL" in os.environ:
        headers["N00dles-Node"] = quote(node)
        if (agent := current_agent()) is not None and agent != node:
            headers["N00dles-Agent"] = quote(agent)
    return {**options, "extra_headers": {**headers, **(options.get("extra_headers") or {})}}
