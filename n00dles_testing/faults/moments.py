"""At which moments a call may fair and square fail: what no system does, is asked of nobody.

A call may raise *before* it has done anything, or *after* it has done all: its reply was lost. Not every call may do
both. An `open` that fails leaves nothing open; a buffered file that fails to close is closed all the same; SQLite
undoes a statement that fails, and the whole transaction if its commit does, and a BEGIN that fails has begun nothing.
"""

from __future__ import annotations

from typing import Any

from .io_calls import IOCall, Kind

__all__ = ["can_fail", "can_lose_its_reply", "in_transaction", "undo"]

_ENDS = frozenset(("__exit__", "close", "rollback"))
_WORKS = frozenset(("commit", "__exit__", "execute", "executemany", "put", "write", "write_batch", "sync", "flush"))


def can_fail(call: IOCall) -> bool:
    """Whether the call may raise, having done nothing."""
    name = _method(call)
    if call.function is None or call.kind in (Kind.CLOSE, Kind.NETWORK) or name == "rollback":
        return False
    return not (call.kind is Kind.LIBRARY and name in _ENDS)


def can_lose_its_reply(call: IOCall, was_in_transaction: bool) -> bool:
    """Whether the call may raise although it has done its work; ask when it has returned.

    `was_in_transaction` is what `in_transaction` said before it.
    """
    if call.function is None:
        return False
    match call.kind:
        case Kind.WRITE | Kind.SYNC | Kind.NAME:
            return True
        case Kind.CLOSE:
            return _is_for_writing(call)
        case Kind.DATABASE:
            return was_in_transaction and not in_transaction(call) and _method(call) != "rollback"
        case Kind.LIBRARY:
            return _method(call) in _WORKS
    return False


def in_transaction(call: IOCall) -> bool:
    """Whether a transaction of SQLite's is open on the connection of the call."""
    owner = getattr(call.function, "__self__", None)
    return bool(getattr(getattr(owner, "connection", owner), "in_transaction", False))


def undo(call: IOCall) -> None:
    """Do what SQLite does by itself when a commit fails on a bad or full disk, also that of a `with connection:`.

    Its transaction is over. It would stay only if somebody else's lock were in the way, and that is another error.
    """
    if call.kind is Kind.DATABASE and _method(call) in ("__exit__", "commit"):
        call.function.__self__.rollback()


def _method(call: IOCall) -> str:
    return str(getattr(call.function, "__name__", ""))


def _is_for_writing(call: IOCall) -> bool:
    owner: Any = call.function.__self__
    return not str(getattr(owner, "mode", "w")).startswith("r") or "+" in str(getattr(owner, "mode", ""))
