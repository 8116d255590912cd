"""What a call raises when the system refuses it: the error that it would really raise, with its code."""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
from typing import Any

from .io_calls import IOCall, Kind

__all__ = ["FAULTS", "error_of", "faults_of"]

FAULTS: dict[str, str] = {"ENOSPC": "the disk is full", "EIO": "the disk fails", "EMFILE": "too many files are open"}
"""The faults that can be put in the place of a call, and what they mean."""

_BY_KIND: dict[Kind, tuple[str, ...]] = {
    Kind.OPEN: ("EMFILE", "ENOSPC"),
    Kind.WRITE: ("ENOSPC", "EIO"),
    Kind.SYNC: ("EIO", "ENOSPC"),
    Kind.NAME: ("ENOSPC", "EIO"),
    Kind.CLOSE: ("EIO", "ENOSPC"),
    Kind.DATABASE: ("ENOSPC", "EIO"),
    Kind.LIBRARY: ("ENOSPC", "EIO"),
    Kind.NETWORK: (),
}
_SQLITE = {
    "ENOSPC": ("database or disk is full", "SQLITE_FULL", 13),
    "EIO": ("disk I/O error", "SQLITE_IOERR_FSYNC", 1034),
    "EMFILE": ("unable to open database file", "SQLITE_CANTOPEN", 14),
}


def faults_of(kind: Kind) -> tuple[str, ...]:
    """Return the faults that a call of this kind can meet, the likeliest first."""
    return _BY_KIND[kind]


def error_of(call: IOCall, fault: str) -> Exception:
    """Return the exception that `call` raises when it meets `fault`."""
    if call.kind is Kind.DATABASE or call.name == "sqlite3.connect":
        text, name, code = _SQLITE["EMFILE" if call.kind is Kind.OPEN else fault]
        error = sqlite3.OperationalError(text)
        error.sqlite_errorname, error.sqlite_errorcode = name, code
        return error
    number = getattr(errno, fault)
    kind = _database_error(call) if call.kind is Kind.LIBRARY else None
    return OSError(number, os.strerror(number)) if kind is None else kind(os.strerror(number))


def _database_error(call: IOCall) -> Any:
    """Return the class that a database's library raises: DB-API's, or the base of its own errors."""
    owner = getattr(call.function, "__self__", None)
    package = sys.modules.get(type(owner).__module__.partition(".")[0])
    if package is None or package.__name__ == "builtins":
        named = [m for m in list(sys.modules.values()) if getattr(m, type(owner).__name__, None) is type(owner)]
        package = named[0] if named else None
    found = getattr(package, "OperationalError", None) or getattr(package, "DiskError", None)
    return found if isinstance(found, type) and issubclass(found, Exception) else None
