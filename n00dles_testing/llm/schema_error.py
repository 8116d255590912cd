"""What is raised when nothing can be made up."""

from __future__ import annotations

__all__ = ["SchemaError"]


class SchemaError(ValueError):
    """No value is known for a JSON schema; give the reply in a script."""
