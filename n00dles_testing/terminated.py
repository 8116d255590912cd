"""The signals that end a command (Ctrl-C, SIGTERM, a closed terminal): it then ends in good order, and once."""

from __future__ import annotations

import atexit
import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

__all__ = ["ENDED", "ENDING", "TERMINATED", "cleaning_up_at_sigterm"]

ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name))
"""What ends a command, besides Ctrl-C."""
TERMINATED = 128 + signal.SIGTERM
"""The exit code of a shell for what SIGTERM has ended."""
ENDED = tuple(128 + number for number in ENDING)
"""The exit codes for what one of these has ended."""

_SECONDS_TO_END = 3.0


class _TerminatedError(BaseException):
    """A signal has come."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(number)


@contextmanager
def cleaning_up_at_sigterm(what: str) -> Iterator[None]:
    """Have SIGTERM, SIGHUP and SIGQUIT leave the block as Ctrl-C does, say `what` was cleaned up by that, and end.

    Whatever comes behind the first of them, as a second Ctrl-C, is ignored: it must not interrupt the cleaning up, nor
    what is told then. Some seconds after the block all is as before. Does nothing outside the main thread, or where
    somebody has a handler of his own.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = (signal.SIG_DFL, signal.default_int_handler)
    handled = (signal.SIGINT, *ENDING)
    before = {number: signal.getsignal(number) for number in handled if signal.getsignal(number) in usual}
    has_come = False
    until = math.inf

    def put_back() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal has_come
        if has_come:
            if time.monotonic() > until:
                put_back()
                os.kill(os.getpid(), number)
            return
        has_come = True
        raise KeyboardInterrupt if number == signal.SIGINT else _TerminatedError(number)

    for number in before:
        signal.signal(number, end)
    try:
        yield
    except _TerminatedError as terminated:
        click.echo(f"terminated; {what}", err=True)
        raise SystemExit(128 + terminated.number) from None
    finally:
        if has_come:
            until = time.monotonic() + _SECONDS_TO_END
            # At its very end the interpreter forgets handlers, but not what is ignored.
            atexit.register(lambda: [signal.signal(number, signal.SIG_IGN) for number in before])
        else:
            put_back()
