"""A server process as the test sees it: started under a keeper, signalled with everything that belongs to it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from . import keeper

__all__ = ["Kept"]

_KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "TMPDIR")
"""Everything else could be meant for another server: PGDATA, PGPORT, LANG."""


class Kept:
    """One life of a server, from its start until its last process has ended.

    `argv` is run in `folder`, and writes to the end of `log`. `user` is the identity to take (see `users.py`),
    `pid_file` what PostgreSQL leaves behind, `remove` the folder that goes too if the test process ends before.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        folder: Path,
        log: Path,
        user: dict[str, int] | None = None,
        pid_file: Path | None = None,
        remove: Path | None = None,
    ) -> None:
        job = {
            "asked_by": os.getpid(),
            "argv": list(argv),
            "folder": str(folder),
            "environment": {
                "LC_ALL": "C",
                "TZ": "UTC",
                **{name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
            },
            "user": user,
            "pid_file": None if pid_file is None else str(pid_file),
            "remove": None if remove is None else str(remove),
        }
        with log.open("ab") as errors:
            # A session of its own: Ctrl-C in the terminal is for the tests, which then stop their servers in order.
            self._keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", keeper.__file__, json.dumps(job)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        assert self._keeper.stdout is not None
        with self._keeper.stdout as answer:
            told = answer.readline()
        self.pid = int(told) if told else None
        """The server's own process, None if it could not even be started: the log has the reason."""

    @property
    def is_running(self) -> bool:
        """Whether any process of the server is left."""
        return self._keeper.poll() is None

    def wait(self, seconds: float | None = None) -> int:
        """Wait until the last process has ended; return the server's exit status, 128 + N after signal N."""
        return self._keeper.wait(seconds)

    def end(self, number: signal.Signals, seconds: float) -> bool:
        """Ask the server to end by its own signal; whether it has within the time."""
        if self.pid is not None and self.is_running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
        try:
            self.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> int:
        """SIGKILL every process of the server at once; return how many there were when all of them have ended."""
        processes = self.processes()
        self.signal(signal.SIGKILL)
        self.wait()
        return len(processes)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to every process of the server."""
        if self.is_running:
            keeper.signal_all(self._keeper.pid, number)

    def processes(self) -> list[int]:
        """Return the processes of the server, the first one first."""
        return keeper.descendants(self._keeper.pid) if self.is_running else []
