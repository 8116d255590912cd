"""What must not get into a file that is kept with the tests: keys, cookies, the names of organisations."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from typing import Any

__all__ = ["REMOVED", "secrets_of", "without_secrets"]

REMOVED = "[removed]"
"""Stands where a secret was."""

_HEADERS = (
    "authorization",
    "x-api-key",
    "api-key",
    "openai-organization",
    "openai-project",
    "anthropic-organization-id",
    "cookie",
)
_VARIABLES = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|_ORG|PROJECT_ID", re.IGNORECASE)
_SHORTEST = 8
# Providers repeat these in the messages of their errors, keys with asterisks in the middle.
_KNOWN = re.compile(r"\b(?:sk-[\w*-]{6,}|org-\w{6,}|proj_\w{6,}|Bearer\s+[\w.~+/*-]{6,})")


def secrets_of(headers: Mapping[str, str]) -> set[str]:
    """Return what the headers of a request (their names in lower case) hold that is secret."""
    held = (headers.get(name, "") for name in _HEADERS)
    words = {word for text in held for word in re.split(r"[\s;=]+", text)}
    return {word for word in words if len(word) >= _SHORTEST}


def without_secrets(value: Any, secrets: Collection[str] = ()) -> Any:
    """Return plain JSON without `secrets` and whatever else must not be kept.

    That is what environment variables hold whose names say that it is secret, and what looks like a key, or like the
    id of an organisation or a project.
    """
    known = {text for name, text in os.environ.items() if _VARIABLES.search(name)} | set(secrets)
    longest_first = sorted((text for text in known if len(text) >= _SHORTEST), key=len, reverse=True)
    return _removed(value, longest_first)


def _removed(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, dict):
        return {name: _removed(inner, secrets) for name, inner in value.items()}
    if isinstance(value, list):
        return [_removed(inner, secrets) for inner in value]
    if not isinstance(value, str):
        return value
    for secret in secrets:
        value = value.replace(secret, REMOVED)
    return _KNOWN.sub(REMOVED, value)
