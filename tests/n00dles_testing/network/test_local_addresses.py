"""Which hosts are on this machine."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from n00dles_testing import local_addresses
from n00dles_testing.local_addresses import is_address, stays_here


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.255.255.254", "127.1", "0x7f000001", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1"),
        *("localhost", "LocalHost.", "api.localhost", b"localhost", "", b"", None, socket.gethostname()),
    ],
)
def test_here(host: str | bytes | None) -> None:
    assert stays_here(host)


@pytest.mark.parametrize(
    "host",
    [
        *("203.0.113.1", "::ffff:203.0.113.1", "2001:db8::1", "224.0.0.1", "ff02::1", "255.255.255.255", "<broadcast>"),
        *("api.openai.com", "localhost.example.com", "notlocalhost", b"api.openai.com", "fe80::1%lo"),
    ],
)
def test_elsewhere(host: str | bytes) -> None:
    assert not stays_here(host)


def test_names_of_the_hosts_file_go_where_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(
        "# a comment\n127.0.0.1 localhost db.test # another\n::1 ip6-loopback\n203.0.113.7 far.test\n"
        "127.0.0.1 both.test\n203.0.113.8 both.test\nnonsense\n"
    )
    monkeypatch.setattr(local_addresses, "_HOSTS", hosts)
    local_addresses._own_names.cache_clear()

    found = {name: stays_here(name) for name in ("db.test", "DB.test.", "ip6-loopback", "far.test", "both.test")}

    local_addresses._own_names.cache_clear()
    assert found == {"db.test": True, "DB.test.": True, "ip6-loopback": True, "far.test": False, "both.test": False}


def test_an_address_of_an_own_interface_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bound(socket.socket):
        def bind(self, address: object) -> None:
            if address != ("203.0.113.9", 0):
                raise OSError

    local_addresses._is_here.cache_clear()
    monkeypatch.setattr(socket, "socket", Bound)

    found = stays_here("203.0.113.9"), stays_here("203.0.113.10")

    local_addresses._is_here.cache_clear()
    assert found == (True, False)


@pytest.mark.parametrize(("host", "expected"), [("127.1", True), (b"::1", True), ("a.test", False), (None, False)])
def test_what_is_an_address(host: str | bytes | None, expected: bool) -> None:
    assert is_address(host) is expected
