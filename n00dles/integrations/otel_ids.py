"""Ids of traces and spans that follow from the run, so that lives in different processes find one another.

A killed life leaves nothing that could be passed on, and its own span was never exported. But every life can compute
what the trace of the run is called, and which span was that of the first life.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import SpanContext, TraceFlags

__all__ = ["RunIds", "first_life"]


def first_life(run_id: str, incarnation: str) -> SpanContext:
    """Return what identifies the span of a run's first life."""
    digest = hashlib.sha256(f"n00dles run\0{run_id}\0{incarnation}".encode("utf-8", "surrogatepass")).digest()
    trace, span = int.from_bytes(digest[:16]), int.from_bytes(digest[16:24])
    return SpanContext(trace or 1, span or 1, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))


class RunIds(IdGenerator):
    """Gives the ids that are `wanted` at the moment in this thread; otherwise those of the generator that it wraps."""

    def __init__(self, inner: IdGenerator) -> None:
        self._inner = inner
        self._wanted = threading.local()

    @contextmanager
    def wanted(self, trace_id: int, span_id: int | None) -> Iterator[None]:
        """Give these to the root span that is started meanwhile; a random span id if `span_id` is None."""
        self._wanted.ids = (trace_id, span_id)
        try:
            yield
        finally:
            self._wanted.ids = (None, None)

    def generate_trace_id(self) -> int:
        """Return the wanted trace id, or a random one."""
        trace_id, _ = getattr(self._wanted, "ids", (None, None))
        return trace_id or self._inner.generate_trace_id()

    def generate_span_id(self) -> int:
        """Return the wanted span id, or a random one."""
        _, span_id = getattr(self._wanted, "ids", (None, None))
        return span_id or self._inner.generate_span_id()

    def is_trace_id_random(self) -> bool:
        """Bits of a hash are as evenly spread as random ones, which is what samplers ask for."""
        return self._inner.is_trace_id_random()
