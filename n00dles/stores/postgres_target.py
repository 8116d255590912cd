"""From the URL of a PostgreSQL store to what libpq is told, and to a name without the password."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ..errors import ConfigurationError
from .raw_passwords import check_password_is_encoded

__all__ = ["PostgresTarget", "parse_target"]

_SCHEMES = ("postgresql://", "postgres://")
_EXAMPLE = "postgresql://user@host:5432/database?schema=n00dles"
_OURS = ("schema", "pool_size", "timeout")
_DEFAULT_SCHEMA, _MAX_SCHEMA_BYTES = "n00dles", 63


@dataclass(frozen=True, slots=True)
class PostgresTarget:
    """A database, the schema in it that holds the tables, and how to use it.

    `name` says so to a person, without a password; `timeout` is in seconds and bounds every call.
    """

    conninfo: str = field(repr=False)
    name: str
    place: Hashable
    schema: str
    pool_size: int
    timeout: float

    @property
    def database(self) -> str:
        """The name without the schema."""
        return self.name.removesuffix(f"?schema={self.schema}")


def parse_target(url: str, *, schema: str | None, pool_size: int | None, timeout: float | None) -> PostgresTarget:
    """Return what `url` says; what is passed beside it wins. Raises `ConfigurationError`, which never quotes `url`.

    The options `schema`, `pool_size` and `timeout` of the URL are ours; all others are those of libpq.
    """
    check_password_is_encoded(url, _EXAMPLE.replace("user@", "user:p%40ss@"))
    base, _, query = url.partition("?")
    options, theirs = dict[str, str](), list[str]()
    for part in query.split("&") if query else []:
        name, _, value = part.partition("=")
        if name in _OURS:
            options[name] = unquote(value)
        else:
            # libpq reads no + as a space, and refuses a second =, which is often written in `options`.
            theirs.append(f"{name}={quote(unquote(value), safe='')}")
    found_schema = schema if schema is not None else options.pop("schema", _DEFAULT_SCHEMA)
    size = _number("pool_size", pool_size if pool_size is not None else options.pop("pool_size", 4))
    seconds = _number("timeout", timeout if timeout is not None else options.pop("timeout", 10.0))
    if size < 1 or size != int(size) or seconds <= 0:
        raise ConfigurationError("a PostgreSQL store needs a pool_size of at least 1, and a timeout above 0 seconds.")
    parameters = _libpq_parameters(base + (f"?{'&'.join(theirs)}" if theirs else ""))
    shown = {key: str(parameters.get(key) or "") for key in ("user", "host", "hostaddr", "port", "dbname")}
    where = shown["host"] or shown["hostaddr"] or "localhost"
    user = f"{shown['user']}@" if shown["user"] else ""
    port = f":{shown['port']}" if shown["port"] else ""
    return PostgresTarget(
        conninfo=make_conninfo("", **{**_DEFAULTS, **parameters}),
        name=f"postgresql://{user}{where}{port}/{shown['dbname'] or shown['user']}?schema={found_schema}",
        place=("postgresql", where, shown["port"] or "5432", shown["dbname"] or shown["user"], found_schema),
        schema=_checked_schema(found_schema),
        pool_size=int(size),
        timeout=seconds,
    )


# A dead network is noticed without a word from the server, as far as the system can do that.
_DEFAULTS = {
    "application_name": "n00dles",
    "keepalives_idle": "30",
    "keepalives_interval": "5",
    "keepalives_count": "3",
}


def _libpq_parameters(url: str) -> dict[str, str | int | None]:
    try:
        if not url.startswith(_SCHEMES):
            raise ConfigurationError(f"that is no URL of a PostgreSQL store; write it as in {_EXAMPLE!r}.")
        return conninfo_to_dict(url)
    except (psycopg.Error, ValueError):
        # The message of libpq quotes a part of the URL, which may be the password.
        raise ConfigurationError(
            f"the URL of a PostgreSQL store cannot be read by libpq; write it as in {_EXAMPLE!r}, with special "
            "characters of user and password percent-encoded, and only options that libpq knows besides schema, "
            "pool_size and timeout."
        ) from None


def _checked_schema(schema: str) -> str:
    has_forbidden = any(sign in schema for sign in "\0%$") or schema.startswith("pg_")
    if not schema or has_forbidden or len(schema.encode()) > _MAX_SCHEMA_BYTES:
        raise ConfigurationError(
            f"{schema!r} cannot be the schema of a store: it needs 1 to {_MAX_SCHEMA_BYTES} bytes, none of them NUL, % "
            "or $, and does not begin with 'pg_'."
        )
    return schema


def _number(name: str, value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ConfigurationError(f"{name}={value!r} of a PostgreSQL store is not a number.")
    return number
