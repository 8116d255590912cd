"""Which calls of C functions lead out of the process, by the module and type that they belong to."""

from __future__ import annotations

import builtins
import sys
import types
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import FrameType, ModuleType
from typing import Any

__all__ = ["IOCall", "Kind", "io_call"]


class Kind(StrEnum):
    """What a call does. Reading is none of these: it changes nothing."""

    OPEN = "open"
    WRITE = "write"
    SYNC = "sync"
    NAME = "name"
    """Renames, removes, makes a folder."""

    CLOSE = "close"
    """Writes what is still in a buffer, and can no longer be called again."""

    DATABASE = "database"
    """A statement or a commit of SQLite."""

    LIBRARY = "library"
    """A call into a C library that is not Python's: whatever it does."""

    NETWORK = "network"


@dataclass(frozen=True, slots=True)
class IOCall:
    """One call, by the name that a person knows it by: `os.replace`, `file.write`, `sqlite3.Connection.execute`."""

    name: str
    kind: Kind
    function: Any = None
    """The bound C function; None where Python only tells that something is called."""


_POSIX = {
    **dict.fromkeys(("open", "mkfifo"), Kind.OPEN),
    **dict.fromkeys(("write", "pwrite", "writev", "pwritev", "sendfile", "copy_file_range"), Kind.WRITE),
    **dict.fromkeys(("truncate", "ftruncate", "posix_fallocate"), Kind.WRITE),
    **dict.fromkeys(("fsync", "fdatasync", "sync"), Kind.SYNC),
    **dict.fromkeys(("rename", "replace", "link", "symlink", "unlink", "remove", "rmdir", "mkdir"), Kind.NAME),
}
_FILE = {
    **dict.fromkeys(("write", "writelines", "flush", "truncate"), Kind.WRITE),
    **dict.fromkeys(("close", "__exit__"), Kind.CLOSE),
}
_SQLITE = {
    **dict.fromkeys(("execute", "executemany", "executescript", "commit", "rollback", "__exit__"), Kind.DATABASE),
    "connect": Kind.OPEN,
}
_SOCKET = {
    **dict.fromkeys(("send", "sendall", "sendto", "sendmsg", "recv", "recv_into", "recvfrom", "recvmsg"), Kind.NETWORK),
    **dict.fromkeys(("connect", "connect_ex", "write", "read"), Kind.NETWORK),
}
_MMAP = {"flush": Kind.SYNC, "write": Kind.WRITE}
_STANDARD = {
    "posix": _POSIX,
    "nt": _POSIX,
    "io": {"open": Kind.OPEN},
    "_io": {**_FILE, "open": Kind.OPEN},
    "_sqlite3": _SQLITE,
    "sqlite3": _SQLITE,
    "_socket": _SOCKET,
    "socket": _SOCKET,
    "_ssl": _SOCKET,
    "ssl": _SOCKET,
    "mmap": _MMAP,
}
_SHOWN_AS = {"posix": "os", "nt": "os", "_sqlite3": "sqlite3", "_socket": "socket"}

_PURE = frozenset(
    (
        "pydantic_core",
        "_pydantic_core",
        "orjson",
        "ujson",
        "msgpack",
        "_cmsgpack",
        "simplejson",
        "yaml",
        "_yaml",
        "numpy",
        "pandas",
        "lxml",
        "regex",
        "rpds",
        "jiter",
        "tiktoken",
        "tokenizers",
        "cython_runtime",
        "_cython",
        "multidict",
        "yarl",
        "frozenlist",
        "propcache",
        "_ruamel_yaml",
        "rapidjson",
        "xxhash",
        "blake3",
        "zstandard",
        "lz4",
        "snappy",
        "brotli",
        "_cffi_backend",
        "greenlet",
        "wrapt",
        "markupsafe",
        "typing_extensions",
    )
)
"""C libraries that only compute: a kill there is a kill between two other calls."""

_WRITES = frozenset(
    (
        "execute",
        "executemany",
        "executescript",
        "commit",
        "rollback",
        "put",
        "putmulti",
        "delete",
        "drop",
        "pop",
        "replace",
        "set",
        "write",
        "write_batch",
        "append",
        "merge",
        "insert",
        "update",
        "upsert",
        "remove",
        "flush",
        "sync",
        "send",
        "sendall",
        "close",
        "begin",
        "open",
        "open_db",
        "__exit__",
        "__setitem__",
        "__delitem__",
    )
)
"""What counts in a library that nobody here knows, by the names of its methods."""

_NOISE = ("importlib", "_frozen_importlib", "logging", "warnings", "traceback", "linecache", "tokenize", "threading")
"""Modules whose own reading and writing is not the store's."""

_LOOP_WAKES_ITSELF = frozenset(("_write_to_self", "_read_from_self"))
_INTERPRETER_TYPES = frozenset(each for each in vars(types).values() if isinstance(each, type))


def io_call(function: Any, frame: FrameType) -> IOCall | None:
    """Return what a C function is that `frame` calls, or None if it does not lead out of the process."""
    owner = getattr(function, "__self__", None)
    name = getattr(function, "__name__", "")
    if owner is None or isinstance(owner, ModuleType):
        found = _of_module(getattr(owner, "__name__", None) or str(getattr(function, "__module__", "")), name)
    else:
        kind: Any = type(owner)
        found = _of_type(kind, name)
    if found is None or owner is sys.stdout or owner is sys.stderr or _is_noise(frame):
        return None
    return IOCall(*found, function)


@cache
def _of_module(module: str, name: str) -> tuple[str, Kind] | None:
    top = module.partition(".")[0]
    if top in _STANDARD:
        kind = _STANDARD[top].get(name)
        # The builtin `open` is told to be of `io`, or of `_io` from 3.12 on.
        shown = "open" if top in ("io", "_io") else f"{_SHOWN_AS.get(top, top)}.{name}"
        return None if kind is None else (shown, kind)
    if not top or top == "builtins" or top in sys.stdlib_module_names or top in _PURE or name not in _WRITES:
        return None
    return f"{module}.{name}", Kind.LIBRARY


@cache
def _of_type(kind: Any, name: str) -> tuple[str, Kind] | None:
    for base in kind.__mro__:
        if name not in vars(base):
            continue
        module, shown = base.__module__.partition(".")[0], f"{base.__name__}.{name}"
        if module == "builtins":
            # A static type of an extension that does not say where it is from.
            is_pythons = base is getattr(builtins, base.__name__, None) or base in _INTERPRETER_TYPES
            is_foreign = not is_pythons and base.__name__[:1].isupper()
            return (shown, Kind.LIBRARY) if is_foreign and name in _WRITES else None
        found = _of_module(module, name)
        if found is None or module not in _STANDARD:
            return None if found is None else (f"{base.__module__}.{shown}", found[1])
        prefix = "file" if module == "_io" else f"{_SHOWN_AS.get(module, module)}.{base.__name__}"
        return f"{prefix}.{'close' if found[1] is Kind.CLOSE else name}", found[1]
    return None


def _is_noise(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    if module.startswith("asyncio"):
        return frame.f_code.co_name in _LOOP_WAKES_ITSELF
    return module.partition(".")[0] in _NOISE
