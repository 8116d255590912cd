"""What a command needs of the process that it runs in: three standard streams, and docstrings."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from .exits import FAILED, USAGE, UnusableError

__all__ = ["expect_docstrings", "open_standard_streams", "telling_what_the_system_refuses"]

_OUTPUT_ERRORS = (errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT)
_DESCRIPTOR_ERRORS = (errno.EMFILE, errno.ENFILE)


def open_standard_streams() -> None:
    """Open what is closed of stdin, stdout and stderr on the null device.

    Else the next file that is opened gets that number, and other processes take it for what they print to.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
            os.set_inheritable(number, True)
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", closefd=False))


def expect_docstrings() -> None:
    """Raise `UnusableError` where docstrings are removed: they are what the clauses say of themselves."""
    if __doc__ is None:
        raise UnusableError(
            "Python runs without docstrings here, and the clauses are documented by theirs: run without -OO, or with "
            "PYTHONOPTIMIZE unset."
        )


@contextmanager
def telling_what_the_system_refuses() -> Iterator[None]:
    """Say in a sentence, and end, if the output cannot be written, or no descriptor is left."""
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # told now, and not at the very end of the interpreter
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno in _DESCRIPTOR_ERRORS:
            click.echo(f"Error: {error.strerror}: this needs more descriptors than ulimit -n allows.", err=True)
            raise SystemExit(USAGE) from None
        if error.errno in _OUTPUT_ERRORS and error.filename is None:
            null_output()
            click.echo(f"Error: the output could not be written: {error.strerror}", err=True)
            raise SystemExit(FAILED) from None
        raise


def null_output() -> None:
    """Have what is left to be printed go nowhere: it must not be flushed at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
