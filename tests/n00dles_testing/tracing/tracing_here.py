"""What the tests of tracing share: the skip where nothing can be traced, and short ways to say what was seen."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from n00dles_testing.tracing import Trace, TracedCall, trace, why_not

needs_tracing = pytest.mark.skipif(why_not() is not None, reason=f"nothing can be traced here: {why_not()}")


def calls(traced: Trace, *names: str) -> list[TracedCall]:
    """The calls of a trace; only those of these names, if there are any."""
    return [call for call in traced.events if isinstance(call, TracedCall) and (not names or call.name in names)]


def only(traced: Trace, *names: str) -> TracedCall:
    """The one call of these names."""
    (call,) = calls(traced, *names)
    return call


def traced_well(run: Callable[[], object], folder: Path) -> Trace:
    """A trace whose child came to a good end."""
    traced = trace(run, str(folder), time_limit=20)
    assert (traced.status, traced.timed_out) == (0, False)
    return traced


def write_whole(path: Path | str, data: bytes, flags: int = os.O_WRONLY | os.O_CREAT | os.O_TRUNC) -> None:
    """Open, write once, close."""
    descriptor = os.open(path, flags, 0o600)
    os.write(descriptor, data)
    os.close(descriptor)
