"""Locations on a server: of a store that keeps its runs with PostgreSQL, Valkey or Redis.

A check either starts a throw-away server, which it may kill and restart, or works on the one that a URL names, which is
the user's: there it keeps to schemas or prefixes of its own, and removes them at the end. A location is a URL: for a
store of ours that of a schema or prefix, for a factory that of a fresh database.
"""

from __future__ import annotations

import importlib
import itertools
import re
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from n00dles.errors import ConfigurationError

from ..servers import PostgresServer, ServerError, ValkeyServer

__all__ = ["SERVERS", "ServedLocations", "Service", "import_client", "is_local", "is_served", "password_hidden"]

SERVERS = ("postgres", "valkey")
"""What can be started for a check."""
_SCHEMES = {
    "postgresql": "postgres",
    "postgres": "postgres",
    "redis": "valkey",
    "rediss": "valkey",
    "unix": "valkey",
}
_NAMES = {"postgres": "PostgreSQL", "valkey": "Valkey"}
_LOCAL = ("127.0.0.1", "::1", "localhost")
_OPTION = {"postgres": "schema", "valkey": "prefix"}
_OPTIONS = {"postgres": "schemas", "valkey": "prefixes"}
_ENCRYPTED = ("require", "verify-ca", "verify-full")
_TIME_TO_CLEAR = 5.0
_PASSWORD = re.compile(r"(://[^:/?#\s@]*):[^\s@]*@")
_PASSWORD_OPTION = re.compile(r"([?&]password=)[^&#\s]*")


def is_served(target: str) -> bool:
    """Whether a target is the URL of a store of ours that keeps its runs with a server."""
    return "{location}" not in target and _scheme(target) in _SCHEMES


def is_local(target: str) -> bool:
    """Whether a target is the URL of a server that answers on its own machine only."""
    if not is_served(target):
        return False
    parts = urlsplit(target)
    host = parts.hostname or dict(parse_qsl(parts.query)).get("host", "")
    return not host or host.startswith("/") or host in _LOCAL


def import_client(target: str) -> None:
    """Import what the store of this URL needs, before a call of it does. Raises `ConfigurationError`."""
    is_postgres = _SCHEMES[_scheme(target)] == "postgres"
    try:
        importlib.import_module("n00dles.stores.postgres" if is_postgres else "redis.asyncio")
    except ImportError as error:
        raise ConfigurationError(
            f"a Redis store needs the package redis: pip install 'n00dles-testing[redis]' ({error})."
        ) from error


def password_hidden(text: str) -> str:
    """Return a text without the passwords of the URLs in it."""
    return _PASSWORD_OPTION.sub(r"\1…", _PASSWORD.sub(r"\1:…@", text))


@dataclass(frozen=True, slots=True)
class Service:
    """The server of a check: of which `kind`, and where.

    `url` is the user's own; without, one is started for the check. `is_ours` says that the store is one of ours, whose
    URL takes a schema or a prefix; `options` is then what else the target says behind its question mark.
    """

    kind: str
    url: str | None = None
    is_ours: bool = False
    options: str = ""

    @classmethod
    def of(cls, target: str, server: str | None) -> Self | None:
        """Return what `target` and the option `--server` ask for; None for no server. Raises `ConfigurationError`."""
        if not is_served(target):
            if server is not None and "://" in target:
                raise ConfigurationError(
                    f"--server {server} starts a server for a factory, or for postgresql:// and redis:// without a "
                    f"host; {password_hidden(target)} is opened without one. Leave --server out."
                )
            return None if server is None else cls(_kind(server))
        scheme, kind = _scheme(target), _SCHEMES[_scheme(target)]
        rest, _, options = target.partition("://")[2].partition("?")
        if rest.strip("/"):
            if server is not None:
                raise ConfigurationError(
                    f"{password_hidden(target)} names a server, and --server {server} would start another. Leave "
                    f"--server out, or write {scheme}:// without a host."
                )
            return cls(kind, target, is_ours=True)
        if scheme == "unix" or "host=" in options:
            return cls(kind, target, is_ours=True)
        if server is None:
            raise ConfigurationError(
                f"{target} names no server. Add --server {kind} to have one started for the check, or name yours: "
                f"{scheme}://user@host/…"
            )
        if _kind(server) != kind:
            raise ConfigurationError(f"{target} is no store for --server {server}; write --server {kind}.")
        return cls(kind, is_ours=True, options=options)

    @property
    def name(self) -> str:
        """What the server is called."""
        return _NAMES[self.kind]

    @property
    def note(self) -> str:
        """What the suite does with it, in a sentence."""
        if self.url is not None:
            return f"checked in {_OPTIONS[self.kind]} of its own, n00dles_check_…, which are removed at the end"
        fresh = f"a fresh {_OPTION[self.kind]}" if self.is_ours else "the URL of a fresh database"
        return f"a throw-away {self.name} server was started for this check; each location is {fresh} on it"

    @property
    def why_no_proxy(self) -> str:
        """Why no proxy can stand before it, in a sentence; empty if one can."""
        if self.url is None:
            return ""
        parts = urlsplit(self.url)
        options = dict(parse_qsl(parts.query))
        if parts.scheme == "rediss" or options.get("sslmode") in _ENCRYPTED:
            return "its connections are encrypted, and a certificate names the server, not a proxy"
        if parts.scheme == "unix" or not parts.hostname or "," in parts.netloc or {"host", "hostaddr"} & set(options):
            return "its URL does not name one host and port"
        return ""

    @property
    def on_its_own(self) -> str:
        """The target and option with which a server is started for the check."""
        return f"{_OPENED[self.kind]} --server {self.kind}"

    def remove(self, nonce: str) -> str:
        """Remove what the check of this nonce has left with the user's server; say what could not be, or nothing."""
        if self.url is None:
            return ""
        try:
            (_remove_schemas if self.kind == "postgres" else _remove_keys)(self.url, _begins(nonce))
        except Exception as error:
            return (
                f"the {_OPTIONS[self.kind]} {_begins(nonce)}… may still be on the server, remove them: "
                f"{password_hidden(f'{type(error).__name__}: {error}')}"
            )
        return ""


_OPENED = {"postgres": "postgresql://", "valkey": "redis://"}


class ServedLocations:
    """Fresh locations on a server; `close` ends it, if it was started here.

    `server` is the throw-away one, which may be killed and restarted; None if it is the user's.
    """

    def __init__(self, service: Service, nonce: str) -> None:
        """Start the server, if need be. Raises `ConfigurationError`."""
        self.service = service
        self.server: PostgresServer | ValkeyServer | None = None
        self._begins = f"{_begins(nonce)}{secrets.token_hex(2)}_"
        self._numbers = itertools.count(1)
        self._databases: list[str] = []
        if service.url is None:
            try:
                self.server = (PostgresServer if service.kind == "postgres" else ValkeyServer)().start()
            except ServerError as error:
                raise ConfigurationError(f"--server {service.kind}: {error}") from error

    def fresh(self) -> str:
        """Return the URL of an empty place."""
        if self.server is not None and not self.service.is_ours:
            self._databases.append(self.server.fresh())
            return self._databases[-1]
        end = ":" if self.service.kind == "valkey" else ""  # else the first prefix would begin the eleventh
        name = f"{self._begins}{next(self._numbers)}{end}"
        if self.server is None:
            assert self.service.url is not None
            return _with(self.service.url, {_OPTION[self.service.kind]: name})
        return _with(f"{self.server.url}?{self.service.options}", {_OPTION[self.service.kind]: name})

    def clear(self) -> None:
        """Remove the databases that were handed out: each takes 8 MB.

        Those that a busy server does not remove in time stay until it is stopped: that is no fault of the store's.
        """
        databases, self._databases = self._databases, []
        ends = time.monotonic() + _TIME_TO_CLEAR
        with suppress(ServerError, OSError):
            while databases and self.server is not None and self.server.is_running and time.monotonic() < ends:
                self.server.drop(databases.pop())

    def close(self) -> None:
        """End the server, if it was started here."""
        if self.server is not None:
            self.server.stop()


def _scheme(target: str) -> str:
    return target.partition("://")[0] if "://" in target else ""


def _kind(server: str) -> str:
    if server not in SERVERS:
        raise ConfigurationError(f"{server!r} is no server that can be started; write {' or '.join(SERVERS)}.")
    return server


def _begins(nonce: str) -> str:
    return f"n00dles_check_{nonce}_"


def _with(url: str, options: dict[str, str]) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query=urlencode({**dict(parse_qsl(parts.query)), **options})))


def _remove_schemas(url: str, begins: str) -> None:
    import psycopg
    from psycopg import sql

    from n00dles.stores.postgres_target import parse_target

    conninfo = parse_target(url, schema=None, pool_size=None, timeout=None).conninfo
    with psycopg.connect(conninfo, autocommit=True, connect_timeout=10) as connection:
        connection.execute("SET lock_timeout = '10s'")
        found = connection.execute("SELECT nspname FROM pg_namespace WHERE starts_with(nspname, %s)", (begins,))
        for (name,) in found.fetchall():
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))


def _remove_keys(url: str, begins: str) -> None:
    from redis import Redis

    from n00dles.stores.redis_settings import parse_url

    settings = parse_url(url)
    connect: Any = partial(Redis.from_url, settings.url, socket_timeout=10, socket_connect_timeout=10)
    with connect() as client:
        for match in (f"{begins}*", f"{{{begins}*"):  # in braces: what keeps the keys of a run on one node of a cluster
            for key in client.scan_iter(match=match, count=1000):
                client.unlink(key)
