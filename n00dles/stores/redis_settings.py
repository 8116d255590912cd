"""How a Redis store is told where its server is and what to make of one that may lose what it has acknowledged."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from ..errors import ConfigurationError
from .raw_passwords import check_password_is_encoded
from .redis_durability import Durability

__all__ = ["RedisSettings", "parse_url"]

_SCHEMES = ("redis", "rediss", "unix")

_PASSED_ON = ("db", "username", "password", "client_name")
"""Options of redis-py that may stand in the query, besides those that begin with ssl_."""


@dataclass(frozen=True, slots=True)
class RedisSettings:
    """What `RedisStateStore` was given. `url` is for redis-py and may hold a password; `shown` is for people.

    `prefix` begins every key. `timeout` (seconds) bounds a call, its retries included, and `durability` says what to do
    about a server that may lose saves. `max_connections` are those of one event loop.
    """

    url: str
    shown: str
    prefix: str = "n00dles:"
    durability: Durability = "require"
    timeout: float = 10.0
    max_connections: int = 8

    @property
    def place(self) -> tuple[str, str, str]:
        """Equal for two stores that keep the same runs, as far as their URLs tell."""
        return "redis", self.shown.partition("://")[2].rpartition("@")[2], self.prefix

    def __repr__(self) -> str:
        return f"RedisSettings({self.shown!r}, prefix={self.prefix!r})"

    def checked(self) -> RedisSettings:
        """Return the same settings. Raises `ConfigurationError` if one of them means nothing."""
        if self.durability not in get_args(Durability):
            raise ConfigurationError(
                f"durability={self.durability!r} means nothing to the Redis store {self.shown}; it is 'require' "
                "(refuse a server that may lose what it has acknowledged) or 'warn'."
            )
        if not isinstance(self.timeout, (int, float)) or not 0 < self.timeout < math.inf:
            raise ConfigurationError(f"timeout={self.timeout!r} is not a positive number of seconds.")
        if not isinstance(self.max_connections, int) or self.max_connections < 1:
            raise ConfigurationError(f"max_connections={self.max_connections!r} is not a positive number.")
        if not self.prefix.isprintable():
            raise ConfigurationError(f"prefix={self.prefix!r} holds characters that cannot be printed.")
        return self


_OWN: Mapping[str, Callable[[str], Any]] = {
    "prefix": str,
    "durability": str,
    "timeout": float,
    "max_connections": int,
}


def parse_url(url: str, **options: Any) -> RedisSettings:
    """Return the settings that a URL names, as in `redis://:password@host:6379/0?prefix=team:&durability=warn`.

    `options` that are not None win over the query. Raises `ConfigurationError`, in which no password is named.
    """
    check_password_is_encoded(url, "redis://user:p%40ss@host:6379/0", ends="/?#")
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - parsed only when it is asked for
    except ValueError as error:
        raise ConfigurationError(f"the URL of a Redis store cannot be read: {error}.") from None
    if parts.scheme not in _SCHEMES or not (parts.hostname or parts.scheme == "unix"):
        raise ConfigurationError(
            f"{_shown(parts, {})!r} names no Redis server; write redis://host:6379/0, rediss://host:6379/0 (TLS), or "
            "unix:///path/of/the.socket?db=0."
        )
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    shown = _shown(parts, query)
    given: dict[str, Any] = {}
    for name, convert in _OWN.items():
        text = query.pop(name, None)
        if text is not None:
            try:
                given[name] = convert(text)
            except ValueError:
                raise ConfigurationError(f"{name}={text!r} in the URL of {shown} is no number.") from None
    for name in query:
        if name not in _PASSED_ON and not name.startswith("ssl_"):
            close = difflib.get_close_matches(name, [*_OWN, *_PASSED_ON], 1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ConfigurationError(
                f"the URL of {shown} has the option {name!r}, which means nothing; known are {', '.join(_OWN)}, "
                f"{', '.join(_PASSED_ON)}, and those of redis-py that begin with ssl_.{hint}"
            )
    _check_db(parts, query, shown)
    settings = RedisSettings(urlunsplit(parts._replace(query=urlencode(query))), shown)
    given.update({name: value for name, value in options.items() if value is not None})
    return replace(settings, **given).checked()


def _check_db(parts: SplitResult, query: Mapping[str, str], shown: str) -> None:
    text = query.get("db", "" if parts.scheme == "unix" else unquote(parts.path).strip("/"))
    if text and not (text.isascii() and text.isdigit()):
        raise ConfigurationError(f"the URL of {shown} names the database {text!r}; Redis numbers them from 0.")


def _shown(parts: SplitResult, query: Mapping[str, str]) -> str:
    """Return the server without any password: scheme, user, place and database."""
    user = f"{quote(unquote(parts.username))}@" if parts.username else ""
    if parts.scheme == "unix":
        return f"unix://{user}{parts.path}?db={query.get('db') or 0}"
    db = query.get("db") or unquote(parts.path).strip("/") or "0"
    return f"{parts.scheme}://{user}{parts.hostname or ''}:{parts.port or 6379}/{db}"
