"""The line that checks one clause again, with all that was said, or disturbs a store again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

__all__ = ["faults_line", "powerloss_line", "replay_line"]

_HOW = {"C03": "kill", "C04": "fail"}


def replay_line(target: str, clause: str, seed: int, options: Sequence[str] = ()) -> str:
    """Return a command for the shell; `options` are further arguments, as they were given."""
    words = ["n00dles-testing", "check", target, "--clause", clause, "--seed", str(seed), *options]
    return " ".join(shlex.quote(word) for word in words)


def faults_line(target: str, clause: str, seed: int, budget: int, options: Sequence[str] = ()) -> str:
    """Return the command that tries at most `budget` kills or faults again; `options` are further arguments."""
    bounds = ["--budget", str(budget), "--seed", str(seed)]
    words = ["n00dles-testing", "faults", target, "--how", _HOW[clause], *bounds, *options]
    return " ".join(shlex.quote(word) for word in words)


def powerloss_line(target: str, models: Sequence[str], seed: int, budget: int) -> str:
    """Return the command that loses the power again; no models are all, and failed syncs."""
    words = ["n00dles-testing", "powerloss", target, *(f"--model={model}" for model in models)]
    return " ".join(shlex.quote(word) for word in [*words, "--budget", str(budget), "--seed", str(seed)])
