"""How a command of `n00dles-testing` ends: its exit codes, and the error for what cannot be used."""

from __future__ import annotations

import click

__all__ = ["BROKEN_PIPE", "FAILED", "INTERRUPTED", "PASSED", "USAGE", "UnusableError"]

PASSED, FAILED, USAGE, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141


class UnusableError(click.ClickException):
    """What was named cannot be used: told without the usage, which was right."""

    exit_code = USAGE
