"""Starting fresh interpreters that can import what this one can, and talking to them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import IO

from .channel import Channel
from .parent import expect_children

__all__ = ["start_interpreter", "start_talking", "working_folder"]

_BOOT = (
    "import gc, importlib, json, sys; sys.path[:] = json.loads(sys.argv[1]); module, *arguments = sys.argv[2:]; "
    "sys.argv[:] = [module]; gc.disable(); main = importlib.import_module(module).main; gc.enable(); main(*arguments)"
)
"""Not PYTHONPATH: whatever that process starts would inherit it. An import leaves next to nothing to collect."""


def start_interpreter(
    module: str,
    arguments: Sequence[str] = (),
    *,
    environment: Mapping[str, str] | None = None,
    keep: Sequence[int] = (),
    output: IO[bytes] | None = None,
    own_session: bool = True,
    folder: str | None = None,
) -> subprocess.Popen[bytes]:
    """Start a fresh interpreter that calls `main` of `module` with these arguments.

    `environment` is added to ours, `keep` are descriptors that it inherits. What it prints goes to `output`, else to
    stderr, so that it cannot mix with a report on stdout. In a session of its own, Ctrl-C in a terminal does not reach
    it, and it can be killed with all that it has started. It starts in `folder`, by default where we are now.
    """
    expect_children()
    path = list(dict.fromkeys(os.path.abspath(entry) for entry in sys.path))
    return subprocess.Popen(
        # -P: a json.py in the working folder must not be taken for the standard one.
        [sys.executable, "-P", "-c", _BOOT, json.dumps(path), module, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=output or 2,
        stderr=None if output is None else subprocess.STDOUT,
        env={**os.environ, **(environment or {})},
        pass_fds=keep,
        start_new_session=own_session,
        cwd=folder,
    )


def start_talking(
    module: str,
    *,
    environment: Mapping[str, str] | None = None,
    output: IO[bytes] | None = None,
    own_session: bool = True,
    folder: str | None = None,
) -> tuple[subprocess.Popen[bytes], Channel]:
    """Start a fresh interpreter, and return it with our end of a channel to it.

    `main` of `module` gets the numbers of the two descriptors of its own end, to read from and to write to.
    """
    child_reads, we_write = os.pipe()
    we_read, child_writes = os.pipe()
    channel = Channel(we_read, we_write)
    try:
        process = start_interpreter(
            module,
            [str(child_reads), str(child_writes)],
            environment=environment,
            keep=(child_reads, child_writes),
            output=output,
            own_session=own_session,
            folder=folder,
        )
    except BaseException:
        channel.close()
        raise
    finally:
        os.close(child_reads)
        os.close(child_writes)
    return process, channel


def working_folder() -> str | None:
    """Return the folder in which this process works, None if that has been removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None
