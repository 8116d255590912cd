"""How long a provider asks its callers to wait before they call again, as the headers of its error tell it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["LONGEST", "retry_after"]

LONGEST = 60.0
"""The most seconds that a header is waited for, whatever it says: a daily quota should not hold a worker for hours."""


def retry_after(error: BaseException) -> float:
    """Return how many seconds the sender of `error` asks to wait, at most `LONGEST`; 0.0 if it does not ask.

    Asked are the errors of the SDKs and of HTTP clients, which have `headers`, or a `response` that does: `error`
    itself, what it was raised from, and the members of a group; the longest wait counts. `retry-after-ms` goes before
    `retry-after`, whose value is seconds or a date (RFC 9110, section 10.2.3). Values that are neither, or are
    negative, are ignored.
    """
    asked = (_asked(headers) for each in _with_causes(error) for headers in _headers_of(each))
    return min(max(asked, default=0.0), LONGEST)


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    left, seen = [error], set[int]()
    while left:
        each = left.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if each.__cause__ is not None:
            left.append(each.__cause__)
        if isinstance(each, BaseExceptionGroup):
            left.extend(each.exceptions)


def _headers_of(error: BaseException) -> Iterator[dict[str, str]]:
    of_response = _attribute(_attribute(error, "response"), "headers")
    for headers in (of_response, _attribute(error, "headers"), _attribute(error, "litellm_response_headers")):
        if headers is None:
            continue
        try:
            yield {str(name).lower(): str(value) for name, value in headers.items()}
        except Exception:  # noqa: S112 - whatever this is, it is no headers
            continue


def _attribute(owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name, None)
    except Exception:
        return None  # a property of somebody's error, which is not what failed here


def _asked(headers: Mapping[str, str]) -> float:
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        seconds = _number(headers.get(name, "")) * unit
        if seconds >= 0:
            return seconds
    return max(0.0, _seconds_until(headers.get("retry-after", "")))


def _number(text: str) -> float:
    """Return a number that is finite and not negative, or -1."""
    try:
        number = float(text)
    except ValueError:
        return -1.0
    return number if math.isfinite(number) and number >= 0 else -1.0


def _seconds_until(date: str) -> float:
    if not date:
        return 0.0
    from email.utils import mktime_tz, parsedate_tz  # not needed by most runs

    try:
        parsed = parsedate_tz(date)
        return 0.0 if parsed is None else mktime_tz(parsed) - time.time()
    except (ValueError, OverflowError):
        return 0.0
