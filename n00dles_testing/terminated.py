"""SIGTERM, as CI sends it when the time is up: a command then ends in good order, as after Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

__all__ = ["TERMINATED", "cleaning_up_at_sigterm"]

TERMINATED = 128 + signal.SIGTERM
"""The exit code of a shell for what SIGTERM has ended."""


class _TerminatedError(BaseException):
    """SIGTERM has come."""


@contextmanager
def cleaning_up_at_sigterm(what: str) -> Iterator[None]:
    """Have SIGTERM leave the block as an exception does, say `what` was cleaned up by that, and end the command.

    Does nothing outside the main thread, or where somebody has a handler of his own.
    """
    is_ours = (
        threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    if not is_ours:
        yield
        return
    signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    except _TerminatedError:
        click.echo(f"terminated; {what}", err=True)
        raise SystemExit(TERMINATED) from None
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _raise(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not interrupt the cleaning up
    raise _TerminatedError
