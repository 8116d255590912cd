"""What both servers have in common: a folder, a port, a log, and lives that begin and end."""

from __future__ import annotations

import os
import random
import secrets
import shutil
import signal
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from .errors import ServerError
from .kept import Kept

__all__ = ["Server"]

_PORTS = range(20_000, 32_000)
"""Below the ports that Linux gives to clients, so that no connection can take a server's port while it restarts."""

_ATTEMPTS = 20
_LAST_LINES = 30
_LONGEST_TEMPORARY_FOLDER = 60
"""The path of a Unix socket has 107 bytes at most, with the names that are added here."""


class Server(ABC):
    """A throw-away server on this machine, as a context manager or by `start` and `stop`.

    Everything is in `folder`, a temporary one. The server ends with the test process, however that ends. Only this
    user can reach the socket; the port, on the loopback interface, wants the password that is in `url`.
    """

    name: ClassVar[str]
    _taken: ClassVar[tuple[str, ...]]
    _quit: ClassVar[signal.Signals]

    def __init__(self, *, start_seconds: float = 60) -> None:
        self.port: int = 0
        self.start_seconds = start_seconds
        self.password = secrets.token_hex(12)
        self._folder: Path | None = None
        self._kept: Kept | None = None
        self._made_by = os.getpid()

    @property
    def folder(self) -> Path:
        """The folder of the data, the socket and the log, from the first start to `stop`."""
        if self._folder is None:
            raise ServerError(f"this {self.name} server was not started, or has been stopped")
        return self._folder

    @property
    def log(self) -> str:
        """Everything that the server has said in all its lives."""
        path = self.folder / "log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    @property
    def is_running(self) -> bool:
        """Whether any process of it is left. A paused server is running."""
        return self._kept is not None and self._kept.is_running

    @property
    def pid(self) -> int:
        """The server's first process. Raises `ServerError` if it is not running."""
        return self._life().pid or 0

    @property
    @abstractmethod
    def url(self) -> str:
        """Where clients find it, over TCP; the same in all its lives."""

    @property
    @abstractmethod
    def socket_url(self) -> str:
        """Where clients find it without TCP."""

    def start(self) -> Self:
        """Start it and wait until it answers. After `kill` it is the same server again, with what it had kept.

        Raises `ServerUnavailableError` if there is no such server here, and `ServerError`, with the end of its log, if
        it does not answer within `start_seconds`.
        """
        if self.is_running:
            raise ServerError(f"this {self.name} server is running already")
        is_new = self._folder is None
        if is_new:
            program = self._find()
            self._folder = Path(tempfile.mkdtemp(prefix="n00dles-server-", dir=_short_folder()))
            try:
                self._prepare(program)
            except BaseException:
                self.stop()
                raise
        try:
            self._start_on_a_port()
        except BaseException:
            self._end(signal.SIGKILL)
            if is_new:  # the data of an earlier life is kept
                self.stop()
            raise
        return self

    def stop(self) -> None:
        """End it and remove its folder. Does nothing if that has been done."""
        if self._made_by != os.getpid():
            return  # a fork of the test process is not whose server it is
        self._end(signal.SIGKILL)  # what an orderly end would still write is removed anyway
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
            self.port = 0

    def kill(self) -> int:
        """SIGKILL the server and all of its processes; return how many there were. `start` brings it back."""
        return self._life().kill()

    def restart(self) -> None:
        """Shut it down in order, if it is running, and start it again on the same port and data."""
        self._end(self._quit)
        self.start()

    def pause(self) -> None:
        """SIGSTOP all of its processes: connections stay, nothing answers. `resume` goes on."""
        self._life().signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT all of its processes."""
        self._life().signal(signal.SIGCONT)

    def processes(self) -> list[int]:
        """Return the processes of the server, the first one first; none if it is not running."""
        return self._kept.processes() if self._kept is not None else []

    def __enter__(self) -> Self:
        return self if self.is_running else self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def __repr__(self) -> str:
        where = f"port {self.port}" if self.is_running else "not running"
        return f"<{type(self).__name__} {where}>"

    @abstractmethod
    def _find(self) -> Path:
        """Return the program or its folder; raise `ServerUnavailableError`."""

    @abstractmethod
    def _prepare(self, program: Path) -> None:
        """Fill the new folder."""

    @abstractmethod
    def _run(self) -> Kept:
        """Start the process, on `self.port`."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether it is ready for clients."""

    def _life(self) -> Kept:
        if self._kept is None or not self._kept.is_running:
            raise ServerError(f"this {self.name} server is not running")
        return self._kept

    def _end(self, number: signal.Signals, seconds: float = 30) -> None:
        if self._kept is None or self._made_by != os.getpid():
            return
        if number is signal.SIGKILL or not self._kept.is_running:
            self._kept.kill()
        else:
            self._kept.signal(signal.SIGCONT)
            if not self._kept.end(number, seconds):
                self._kept.kill()
        self._kept = None

    def _start_on_a_port(self) -> None:
        """Let the server itself take the port, and try another one if it was taken: to ask before would be a race."""
        is_new = self.port == 0
        until = time.monotonic() + self.start_seconds
        for _ in range(_ATTEMPTS):
            if is_new:
                self.port = random.SystemRandom().choice(_PORTS)
            before = len(self.log)
            self._kept = self._run()
            while self._kept.is_running and not self._answers():
                if time.monotonic() > until:
                    raise ServerError(self._told(f"did not answer within {self.start_seconds:g} s"))
                time.sleep(0.005)
            if self._kept.is_running:
                return
            if not any(words in self.log[before:] for words in self._taken):
                break
            if not is_new:
                time.sleep(0.1)
        raise ServerError(self._told(f"ended at once, with status {self._kept.wait() if self._kept else '?'}"))

    def _told(self, what: str) -> str:
        lines = self.log.splitlines()[-_LAST_LINES:]
        return f"the {self.name} server {what}. The end of its log:\n" + "\n".join(f"  {line}" for line in lines)


def _short_folder() -> str:
    usual = tempfile.gettempdir()
    return usual if len(os.fsencode(usual)) <= _LONGEST_TEMPORARY_FOLDER else "/tmp"  # noqa: S108 - mkdtemp makes it safe
