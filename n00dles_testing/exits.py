"""How a command of `n00dles-testing` ends: its exit codes, and the error for what cannot be used."""

from __future__ import annotations

import click

__all__ = ["BROKEN_PIPE", "FAILED", "INTERRUPTED", "PASSED", "USAGE", "UnusableError"]

PASSED, FAILED, USAGE, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141
_MOST_SHOWN = 2000


class UnusableError(click.ClickException):
    """What was named cannot be used: told without the usage, which was right."""

    exit_code = USAGE

    def __init__(self, message: str) -> None:
        """Of a very long message, as one that quotes a long text, the beginning and the end are told."""
        if len(message) > _MOST_SHOWN:
            half = _MOST_SHOWN // 2
            message = f"{message[:half]} … ({len(message)} characters) … {message[-half:]}"
        super().__init__(message)
