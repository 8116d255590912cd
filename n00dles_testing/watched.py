"""Work in a forked process that is watched: an executor that ends or blocks its process does not end in silence."""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import NoReturn

from .parent import die_with_parent

__all__ = ["SilentEndError", "can_watch", "watched"]

_SIGN_OF_LIFE, _END = b".", b"e"
_SECONDS_FOR_A_TRACEBACK = 1.0


class SilentEndError(Exception):
    """The work came to no end of its own. `has_begun` says whether it had given a sign of life."""

    def __init__(self, message: str, *, has_begun: bool) -> None:
        super().__init__(message)
        self.has_begun = has_begun


def can_watch() -> bool:
    """Whether work can be done in a fork here: not where somebody has put his own stream in place of stdout."""
    return hasattr(os, "fork") and sys.stdout is sys.__stdout__


def watched(work: Callable[[Callable[[], None]], int], *, silence: float) -> int:
    """Return the exit code that `work` returns; it is handed a function to call at each sign of life.

    Raises `SilentEndError` if its process ends before that, or gives no sign for `silence` seconds; it is then ended,
    and where it was stands on stderr.
    """
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(reader)
        die_with_parent(parent)
        _work(work, writer)
    os.close(writer)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the child hears of it as well, and ends in good order
    try:
        return _followed(child, reader, silence)
    finally:
        signal.signal(signal.SIGINT, before)
        os.close(reader)


def _work(work: Callable[[Callable[[], None]], int], writer: int) -> NoReturn:
    code = 1
    try:
        faulthandler.register(signal.SIGUSR1)
        code = work(lambda: _tell(writer, _SIGN_OF_LIFE))
        _tell(writer, _END)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
        _tell(writer, _END)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        _tell(writer, _END)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _tell(writer: int, sign: bytes) -> None:
    os.write(writer, sign)


def _followed(child: int, reader: int, silence: float) -> int:
    has_begun = False
    while True:
        if not select.select([reader], [], [], silence)[0]:
            os.kill(child, signal.SIGUSR1)
            time.sleep(_SECONDS_FOR_A_TRACEBACK)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise SilentEndError(
                f"it has blocked its process for {silence:g} s, which no time limit can interrupt; where it was stands "
                "above. Await instead of blocking (asyncio.sleep for time.sleep), or call it in a thread.",
                has_begun=has_begun,
            )
        signs = os.read(reader, 4096)
        has_begun = has_begun or _SIGN_OF_LIFE in signs
        if signs and _END not in signs:
            continue
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if not signs:
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise SilentEndError(
                f"it ended the process of the command, with {how} (os._exit, or a crash of an extension?). What had "
                "been found is lost with it.",
                has_begun=has_begun,
            )
        return code
