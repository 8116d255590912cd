"""The error of whatever is no spec, or is the spec of a pipeline that could not be built."""

from __future__ import annotations

from n00dles.errors import ConfigurationError

__all__ = ["SpecError"]


class SpecError(ConfigurationError, ValueError):
    """A spec is damaged, or describes no pipeline that could run. The message says where and why; nothing was run."""
