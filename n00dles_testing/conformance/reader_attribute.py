"""The attribute `reader` of a factory: an out-of-band reader, see `out_of_band`, said where the factory is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["reader_of"]


def reader_of(factory: Any) -> Callable[..., Any] | None:
    """Return the attribute `reader` of a factory, if it is one: a function of two arguments.

    The method `reader` of a class that is used as a factory is something of the author's own, unless it is static.
    """
    try:
        raw = inspect.getattr_static(factory, "reader", None)
        reader = getattr(factory, "reader", None)
        if not callable(reader) or (isinstance(factory, type) and not isinstance(raw, staticmethod)):
            return None
        inspect.signature(reader).bind("location", "run_id")
    except Exception:
        return None
    return reader  # type: ignore[no-any-return]
