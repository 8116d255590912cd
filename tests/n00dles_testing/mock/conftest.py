"""What `mock_llm` patches is imported before any test: a pytest inside a test forgets what was first imported there."""

from __future__ import annotations

import httpcore2  # noqa: F401
