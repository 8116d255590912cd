"""The head of a run and what a node has cost, as JSON text: written by every save, so by hand, in half the time."""

from __future__ import annotations

from functools import lru_cache

from ..records import NodeRecord, RunHead
from ..serialization import quoted

__all__ = ["head_text", "record_text"]


def head_text(head: RunHead) -> str:
    """Return the fields of `head` as the inside of a JSON list."""
    # Texts that can hold anything are encoded, also `unfinished`, which is JSON already.
    status, pipeline, lives, stalled, elapsed_ms, error, created_at, updated_at, unfinished = head
    return (
        f'"{status}",{_text(pipeline)},{lives},{stalled},{elapsed_ms!r},{_text(error)},{_repr_again(created_at)},{updated_at!r},'
        f"{quoted(unfinished)}"
    )


def record_text(record: NodeRecord) -> str:
    """Return the fields of `record` as the inside of a JSON list."""
    return (
        f"{record.attempts},{record.input_tokens},{record.output_tokens},{float(record.duration_ms)!r},"
        f"{_text(record.error)},{record.spent}"
    )


_repr_again = lru_cache(maxsize=256, typed=True)(repr)
"""Of a number that is the same in every save of a run; to write one takes longer than to write the other fields."""


def _text(text: str | None) -> str:
    return "null" if text is None else quoted(text)
