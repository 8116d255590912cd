"""Finding a password that stands in a URL as it is, before anybody reads the URL in another way than it was meant."""

from __future__ import annotations

import re

from ..errors import ConfigurationError

__all__ = ["check_password_is_encoded"]

_PORT = re.compile(r"(:[0-9]*)?")


def check_password_is_encoded(url: str, example: str, *, ends: str = "/?") -> None:
    """Raise `ConfigurationError`, which quotes nothing of `url`, if its user or password has characters that end them.

    Behind a password such as `pa/ss` or `p@ss`, what follows would be taken for a host, a port or a path, and be told
    as such. `example` shows how a URL is written, and `ends` are the characters that end its authority: a # does so in
    RFC 3986 (section 3.2), and not for libpq.
    """
    rest = url.partition("://")[2]
    authority = re.split(f"[{ends}]", rest, maxsplit=1)[0]
    behind = rest[len(authority) :]
    path, _, query = behind.partition("?")
    stray = path + query.partition("=")[0]
    # In a query or a path an @ may be meant; not so behind what is no host and port, which then is half a password.
    hosts = authority.rpartition("@")[2]
    is_cut = bool(authority) and "@" not in authority and "@" in behind
    is_half = is_cut and ("@" in stray or not all(_PORT.fullmatch(_behind_host(host)) for host in hosts.split(",")))
    if authority.count("@") > 1 or is_half:
        raise ConfigurationError(
            "the URL of the store has an @ where none can be: percent-encode the special characters of its user and "
            f"password (@ is %40, / is %2F, ? is %3F, # is %23, % is %25), as in {example!r}. Nothing was tried."
        )


def _behind_host(host: str) -> str:
    return host.partition("]")[2] if host.startswith("[") else host[len(host.partition(":")[0]) :]
