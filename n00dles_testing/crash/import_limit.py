"""An end to an import that has none: after its time limit it is interrupted, and the line where it hangs is named."""

from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

from .scenario import BackendError

__all__ = ["IMPORT_TIMES", "import_limit"]

IMPORT_TIMES = 4
"""So many times the limit of a life may an import take: a life finds everything imported."""


class _TooLongError(BaseException):
    """Not an `Exception`, so that no module takes it for an import that may fail."""


@contextmanager
def import_limit(target: str, seconds: float) -> Iterator[None]:
    """Raise `BackendError` with the line if what is inside takes longer. Without SIGALRM, nothing is limited."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def over(number: int, frame: FrameType | None) -> None:
        raise _TooLongError

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except _TooLongError as error:
        raise BackendError(
            f"the import of {target} was not done after {seconds:g} s; it was at {_place(error.__traceback__)}. "
            "A module that serves or waits when it is imported should do so under `if __name__ == '__main__':`; a "
            "slow one gets more time from a larger time_limit= (--time-limit)."
        ) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _place(trace: TracebackType | None) -> str:
    """Return the innermost line that is not the signal handler's."""
    frames = [frame for frame in traceback.extract_tb(trace) if frame.filename != __file__]
    last = frames[-1]
    return f"{last.filename}, line {last.lineno}, in {last.name}" + (f": {last.line}" if last.line else "")
