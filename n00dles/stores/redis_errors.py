"""What redis-py and a Redis server say, as an error of ours: which store, which run, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from redis import exceptions as said

from ..errors import CorruptCheckpointError, ReadOnlyStoreError, StateStoreError

__all__ = ["is_transient", "store_error"]

_FOR_GOOD = (said.AuthenticationError, said.AuthorizationError, said.MaxConnectionsError)

_WAITS = ("LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY ", "UNKILLABLE")


def is_transient(error: BaseException) -> bool:
    """Whether the same call may succeed in a moment, on a new connection if need be."""
    if isinstance(error, _FOR_GOOD) or _is_tls(error):
        return False
    if isinstance(error, said.ResponseError):
        return _said(error).startswith(_WAITS)
    return isinstance(error, (said.ConnectionError, said.TimeoutError, TimeoutError, OSError))


def store_error(error: BaseException, shown: str, run_id: str | None, seconds: float) -> StateStoreError:
    """Return the error to raise; `seconds` is how long a call is tried, and `shown` the URL without its password."""
    subject = f"the Redis store {shown}" + (f" (run {run_id!r})" if run_id is not None else "")
    text = f"{type(error).__name__}: {_said(error)}".rstrip(": .")
    if _said(error).startswith("WRONGTYPE"):
        return CorruptCheckpointError(
            f"{subject} is damaged: a key of it holds something else ({error}). It is left as it is; name another "
            "prefix (?prefix=), or remove that key.",
            run_id=run_id,
        )
    advice = _advice(error, seconds, wants_tls=shown.startswith("rediss:"))
    kind = ReadOnlyStoreError if _said(error).startswith("READONLY") else StateStoreError
    return kind(
        f"{subject} failed: {text}; {advice}. Nothing of this call was acknowledged; resume the run "
        "once it works again.",
        run_id=run_id,
    )


def _advice(error: BaseException, seconds: float, *, wants_tls: bool) -> str:
    if _is_tls(error):
        return (
            "TLS cannot be agreed on: check whether the server wants it (rediss://) or not (redis://), and its "
            "certificate"
        )
    text = _said(error)
    for fragments, advice in _ADVICE:
        if any(fragment in text for fragment in fragments):
            return advice
    if isinstance(error, (said.AuthenticationError, said.AuthorizationError)):
        return "check the user and the password in its URL"
    if isinstance(error, (said.TimeoutError, TimeoutError)):
        tls = ", that the server speaks TLS (else write redis://)" if wants_tls else ""
        return (
            f"no answer came within {seconds:g} s: check that the server and the network are up{tls}, or raise timeout="
        )
    if is_transient(error):
        return (
            f"it was tried for {seconds:g} s: check that the server is up at this address, and whether it wants TLS "
            "(rediss://)"
        )
    return "see what the server said"


_ADVICE: Sequence[tuple[tuple[str, ...], str]] = (
    (("OOM ", "maxmemory"), "its memory is full: raise maxmemory, or remove runs (n00dles runs prune)"),
    (("READONLY", "read only replica", "read-only"), "it is a replica, which cannot write: name the primary"),
    (("MISCONF",), "it cannot write to its disk: make room there, and read its log"),
    (("NOREPLICAS",), "it has fewer replicas than it asks for (min-replicas-to-write)"),
    (("MOVED ", "ASK "), "it is one node of a cluster, and the run belongs to another: name a proxy of the cluster"),
    (("LOADING", "is loading"), "it is still reading its data: wait until it is up, or raise timeout="),
    (("DB index is out of range", "SELECT is not allowed"), "it has no database of this number: change it in the URL"),
    (("NOAUTH", "Authentication required"), "it wants a password: write redis://user:password@host"),
    (("WRONGPASS", "invalid username-password", "invalid password"), "check the user and the password in its URL"),
    (
        ("NOPERM", "ACL failure", "no permissions"),
        "its user lacks a right: it needs EVALSHA, EVAL, HGETALL, the commands of hashes and sorted sets, DEL, EXISTS, "
        "TIME and PEXPIREAT, and the keys of the prefix",
    ),
    (("max number of clients",), "it has no connection left: raise maxclients there, or start fewer workers"),
    (("string exceeds maximum", "invalid bulk length"), "a value is larger than it takes (proto-max-bulk-len, 512 MB)"),
)


def _said(error: BaseException) -> str:
    """Return the message of an error with the code that redis-py has taken from its beginning."""
    code = getattr(error, "status_code", None)
    return f"{code} {error}" if code else str(error)


def _is_tls(error: BaseException) -> bool:
    return "SSL" in str(error) or "CERTIFICATE" in str(error).upper()
