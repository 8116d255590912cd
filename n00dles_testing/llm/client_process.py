"""Which process of this machine is at the other end of a loopback connection. Linux only, from /proc."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

__all__ = ["client_process"]


def client_process(connection: socket.socket) -> int:
    """Return the pid of the client. Raises `OSError` if that cannot be told, or if several processes hold its end."""
    if not sys.platform.startswith("linux"):
        raise OSError(f"which process a connection belongs to cannot be told on {sys.platform}; use arm_kill")
    inode = _inode(connection.getpeername(), connection.getsockname())
    holders = [pid for pid in _pids() if f"socket:[{inode}]" in _open_files(pid)]
    if len(holders) != 1:
        who = f"processes {holders}" if holders else "no process of this user"
        raise OSError(f"{who} hold the client's end of the connection; use arm_kill to say which one to kill")
    return holders[0]


def _inode(client: tuple[str, int], server: tuple[str, int]) -> str:
    here, there = _in_hex(client), _in_hex(server)
    for table in ("tcp", "tcp6"):  # a Java client has a socket of version 6, with the address of version 4 at its end
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[1].endswith(here) and fields[2].endswith(there):
                return fields[9]
    raise OSError(f"the client's end of the connection, port {client[1]}, is not in /proc/net/tcp; has it ended?")


def _in_hex(address: tuple[str, int]) -> str:
    ip = int.from_bytes(socket.inet_aton(address[0]), sys.byteorder)
    return f"{ip:08X}:{address[1]:04X}"


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _open_files(pid: int) -> set[str]:
    folder = f"/proc/{pid}/fd"
    found = set()
    try:
        for name in os.listdir(folder):
            found.add(os.readlink(f"{folder}/{name}"))
    except OSError:
        pass  # it has just ended, or is another user's
    return found
