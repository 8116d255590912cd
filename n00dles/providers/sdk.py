"""What must be there before a provider can be called."""

from __future__ import annotations

import importlib.util

from ..errors import ConfigurationError

__all__ = ["require_model", "require_sdk"]


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
