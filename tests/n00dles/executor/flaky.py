"""Agents that fail so many times, and observers that play the end of the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from n00dles import Agent, RetryPolicy
from n00dles.events import Event

__all__ = ["AT_ONCE", "Death", "calls", "die_at", "flaky"]

AT_ONCE = RetryPolicy(max_attempts=3, base_delay=0)

calls: list[str] = []
"""Who was called, in this test; each test starts it anew."""


class Death(BaseException):
    """Stands for the end of the process."""


def flaky(name: str, failures: int, error: type[BaseException] = RuntimeError, **settings: Any) -> Agent:
    """Return an agent that fails so many times before it succeeds."""
    left = [failures]

    async def body(value: str) -> str:
        calls.append(name)
        if left[0]:
            left[0] -= 1
            raise error(f"no luck {left[0]}")
        return f"{name}({value})"

    return Agent(body, **{"retry": AT_ONCE, **settings}).named(name)


def die_at(name: str, **fields: Any) -> Callable[[Event], None]:
    def observer(event: Event) -> None:
        if event.name == name and all(getattr(event, field) == value for field, value in fields.items()):
            raise Death

    return observer
