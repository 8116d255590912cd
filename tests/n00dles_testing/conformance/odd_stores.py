"""Stores that are odd in ways that a checker must not stumble over."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import threading
import time
from contextlib import suppress
from typing import Any

from n00dles_testing.conformance.mutants.correct import JSONFiles


class UnreadableError(Exception):
    """Its message cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class RaisesWhatCannotBeRead(JSONFiles):
    def save(self, run_id: str, context: Any) -> None:
        raise UnreadableError


class ClosesNever(JSONFiles):
    def close(self) -> None:
        time.sleep(3600)


class GoesElsewhere(JSONFiles):
    """Changes the working folder of its process; all else is right."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        os.chdir("/")


class IgnoresChildren(JSONFiles):
    """Has the kernel forget the ends of its children."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)


class StartsAHelper(JSONFiles):
    """Has a helper in a session of its own, and ends it when it is closed; who kills the store leaves it behind."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.helper = subprocess.Popen(["sleep", "4321.25"], start_new_session=True)

    def close(self) -> None:
        self.helper.kill()
        self.helper.wait()


class WaitsForItsTurn(JSONFiles):
    """One owner at a time: whoever opens it waits until the last one has closed it, or died."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.turn = open(os.path.join(folder, "owner"), "w")  # noqa: SIM115 - open as long as the store
        fcntl.flock(self.turn, fcntl.LOCK_EX)

    def close(self) -> None:
        fcntl.flock(self.turn, fcntl.LOCK_UN)
        self.turn.close()


class KeepsSpecialFiles(JSONFiles):
    """Has a socket, a named pipe and a link to nowhere beside its records, as a store with a server may."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        with suppress(OSError), socket.socket(socket.AF_UNIX) as server:
            server.bind(os.path.join(folder, "server.socket"))
        with suppress(FileExistsError):
            os.mkfifo(os.path.join(folder, "wake-up"))
        with suppress(FileExistsError):
            os.symlink("some-host:4321", os.path.join(folder, "owner"))


class KeepsSpecialFilesAndForgets(KeepsSpecialFiles):
    def save(self, run_id: str, context: Any) -> None:
        pass


class TalksToAServer(JSONFiles):
    """Tells a server of each save, over a connection of its own."""

    def save(self, run_id: str, context: Any) -> None:
        super().save(run_id, context)
        with socket.create_connection(("127.0.0.1", int(os.environ["PORT_OF_A_SERVER"]))):
            pass
