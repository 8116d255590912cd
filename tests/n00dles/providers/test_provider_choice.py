"""Which provider a model's name leads to."""

from __future__ import annotations

import pytest

from n00dles.errors import ConfigurationError
from n00dles.providers import AnthropicProvider, OpenAIProvider, Provider, provider_for


@pytest.mark.parametrize(
    "model", ["gpt-4o-mini", "gpt-5", "chatgpt-4o-latest", "o1", "o3-mini", "o4-mini", "openai/llama3", "ft:gpt-4o:me"]
)
def test_names_of_openai_lead_to_its_provider(model: str) -> None:
    provider = provider_for(model)

    assert isinstance(provider, OpenAIProvider)
    assert isinstance(provider, Provider)
    assert provider is provider_for("gpt-4o")


@pytest.mark.parametrize("model", ["claude-sonnet-4-6", "anthropic/my-claude"])
def test_names_of_anthropic_lead_to_its_provider(model: str) -> None:
    provider = provider_for(model)

    assert isinstance(provider, AnthropicProvider)
    assert isinstance(provider, Provider)


@pytest.mark.parametrize("model", ["llama3", "", "openai/", "gpt", "orca-2", "my-gpt-4"])
def test_any_other_name_is_refused_with_what_to_do(model: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        provider_for(model)

    assert f"openai/{model}" in str(caught.value)
    assert "provider=" in str(caught.value)
