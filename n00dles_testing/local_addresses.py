"""What is on this machine: hosts that can be reached without a packet leaving it."""

from __future__ import annotations

import functools
import ipaddress
import socket
from pathlib import Path

__all__ = ["is_address", "stays_here"]

_HOSTS = Path("/etc/hosts")


def stays_here(host: str | bytes | None) -> bool:
    """Whether a connection to `host`, a name or an address as Python's sockets take it, stays on this machine.

    So it does for loopback, the unspecified addresses (`0.0.0.0`, `::`), every address that an interface of this
    machine has, `localhost` and names under it, the name of this machine, and the names that `/etc/hosts` gives to any
    of these. Nothing is looked up over the network to find out.
    """
    if host is None or host in ("", b""):
        return True
    text = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    address = _address(text)
    if address is not None:
        return _is_here(address)
    name = text.rstrip(".").lower()
    return name == "localhost" or name.endswith(".localhost") or name in _own_names()


def is_address(host: str | bytes | None) -> bool:
    """Whether `host` is an address, so that nobody has to be asked for one."""
    text = host.decode("ascii", "replace") if isinstance(host, bytes) else host
    return text is not None and _address(text) is not None


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(text))  # also 127.1 and 0x7f000001, as the resolver takes them
    except OSError:
        return None


@functools.lru_cache(maxsize=256)
def _is_here(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if address.is_loopback or address.is_unspecified:
        return True
    if address.is_multicast or str(address) == "255.255.255.255":
        return False
    # Only an address of an own interface can be bound; asking so sends nothing.
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6  # noqa: PLR2004 - the version of IP
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


@functools.lru_cache(maxsize=1)
def _own_names() -> frozenset[str]:
    own = socket.gethostname().lower()
    names = {own, own.partition(".")[0]}
    try:
        lines = _HOSTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset(names)
    elsewhere: set[str] = set()
    for line in lines:
        text, *aliases = line.partition("#")[0].split() or [""]
        address = _address(text)
        if address is not None:
            (names if _is_here(address) else elsewhere).update(alias.rstrip(".").lower() for alias in aliases)
    return frozenset(names - elsewhere)
