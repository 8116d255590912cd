"""What must be so before a provider can be called."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

from ..errors import ConfigurationError
from ..idempotency import current_idempotency_key

__all__ = ["refuse_http_client", "require_model", "require_sdk", "with_idempotency_key"]


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


def with_idempotency_key(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of an SDK call with the node's key in its header, unless the caller has set one."""
    key = current_idempotency_key()
    if key is None:
        return options
    return {**options, "extra_headers": {"Idempotency-Key": key, **(options.get("extra_headers") or {})}}
