"""Which of the known HTTP APIs a URL belongs to."""

from __future__ import annotations

from .anthropic_shape import AnthropicShape
from .openai_shape import OpenAIShape
from .responses_shape import ResponsesShape
from .shapes import Shape

__all__ = ["SHAPES", "shape_for"]

SHAPES: tuple[Shape, ...] = (OpenAIShape(), ResponsesShape(), AnthropicShape())


def shape_for(path: str) -> Shape | None:
    """Return the shape of the URL with this path, whatever its host and base are, or None for another kind of URL."""
    return next((shape for shape in SHAPES if path.endswith(shape.path)), None)
