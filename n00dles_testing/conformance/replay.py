"""The line that checks one clause again, with all that was said."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

__all__ = ["replay_line"]


def replay_line(target: str, clause: str, seed: int, options: Sequence[str] = ()) -> str:
    """Return a command for the shell; `options` are further arguments, as they were given."""
    words = ["n00dles-testing", "check", target, "--clause", clause, "--seed", str(seed), *options]
    return " ".join(shlex.quote(word) for word in words)
