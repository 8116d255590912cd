"""How a command of `n00dles-testing` ends: its exit codes, and the error for what cannot be used."""

from __future__ import annotations

import click

__all__ = ["BROKEN_PIPE", "EXIT_CODES", "FAILED", "INTERRUPTED", "PASSED", "USAGE", "UnusableError"]

PASSED, FAILED, USAGE, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141
EXIT_CODES = """\b
Exit codes:
  0    something was tried, and nothing failed
  1    a clause failed, or showed nothing (VACUOUS); of a pipeline, also if one is UNKNOWN (see --allow-unknown); of a
       store, also if none passed, a claim is denied, or a declared gap passes; also if a report could not be written
  2    the command line or the target cannot be used; nothing was tried
  130  interrupted
  141  the reader of the output was gone before its end, as with | head
  143  ended by SIGTERM (129 by SIGHUP, 131 by SIGQUIT), and cleaned up, as after an interrupt
"""
"""The same for `--help`, in the words of the commands that check something."""
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
