"""The story of a scenario while it happens: one line a call, told to the outside before the call is made.

A store may end the process or never return; whoever listens then knows how far it came.
"""

from __future__ import annotations

from collections.abc import Callable

from .shortened import shorten

__all__ = ["Journal"]

Listener = Callable[[int, str], None]


class Journal:
    """Numbered steps. `listener` hears each step, and again when its outcome is known."""

    def __init__(self, title: str, listener: Listener | None = None) -> None:
        self._listener = listener
        self._steps: list[str] = []
        self.write(f"scenario {title}")

    def write(self, text: str) -> int:
        """Add a step and return its number."""
        self._steps.append(text)
        self._tell(len(self._steps) - 1)
        return len(self._steps) - 1

    def outcome(self, step: int, text: str) -> None:
        """Say how a step ended."""
        self._steps[step] += f" → {text}"
        self._tell(step)

    def goes_on(self, step: int) -> None:
        """Tell a step again: it is long, and whoever listens shall not take it for one that hangs."""
        self._tell(step)

    @property
    def story(self) -> tuple[str, ...]:
        """The steps so far; a long story is shortened."""
        return shorten(self._steps)

    def _tell(self, step: int) -> None:
        if self._listener is not None:
            self._listener(step, self._steps[step])
