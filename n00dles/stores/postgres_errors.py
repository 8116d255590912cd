"""What PostgreSQL or the way to it says against a call, in our terms: which store, which run, and what to do."""

from __future__ import annotations

import psycopg

from ..errors import CorruptCheckpointError, ReadOnlyStoreError, StateStoreError
from .postgres_target import PostgresTarget

__all__ = ["is_transient", "store_error"]

_TRANSIENT_CODES = (
    "08",  # the connection broke
    "40001",  # serialization failure
    "40P01",  # deadlock
    "53300",  # too many connections
    "57P01",  # the server is being shut down
    "57P02",  # another backend crashed
    "57P03",  # the server is starting
)

# What a refused connection was refused for has no code, only libpq's words. What is not among these ends at once: a
# wrong password that is tried ten times locks an account.
_TRANSIENT_WORDS = (
    "refused",
    "timeout",
    "timed out",
    "closed the connection",
    "connection reset",
    "starting up",
    "shutting down",
    "recovery mode",
    "not yet accepting",
    "too many clients",
    "connection slots",
    "no such file",
    "broken pipe",
)

_READ_ONLY = "25006"

_ADVICE = (
    ("28", "check user and password of the URL, and the server's pg_hba.conf"),
    ("3D000", "create the database, or name another one in the URL"),
    ("42501", "grant the rights: CREATE on the database for the first use, then USAGE on the schema, SELECT, INSERT, "
              "UPDATE, DELETE on its tables and EXECUTE on its functions"),
    (_READ_ONLY, "this server is a read-only replica or in read-only mode: name the primary in the URL "
              "(target_session_attrs=read-write finds it among several hosts)"),
    ("53100", "the server's disk is full: make room there"),
    ("53200", "the server is out of memory"),
    ("53300", "the server has no connection left: raise max_connections, or use a pooler or a smaller pool_size"),
    ("54", "a value is larger than the server's limit (1 GB)"),
    ("57014", "the server cancelled the statement: see its statement_timeout and lock_timeout"),
    ("42P07", "the schema holds tables of something else: name another one in the URL (?schema=…)"),
    ("42P01", "its tables are gone: restore the schema from a backup, or name another schema"),
    ("42883", "its functions are gone: restore the schema from a backup, or name another schema"),
    ("3F000", "its schema is gone: restore it from a backup, or name another schema"),
)  # fmt: skip

_ADVICE_BY_WORDS = (
    ("password", "28"),
    ('role "', "28"),
    ("pg_hba", "28"),
    ("authentication", "28"),
    ('" does not exist', "3D000"),
    ("too many clients", "53300"),
    ("connection slots", "53300"),
)


def is_transient(error: BaseException) -> bool:
    """Whether the same call may succeed a moment later, over a new connection."""
    if isinstance(error, TimeoutError):
        return True
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    if error.sqlstate is not None:
        return error.sqlstate.startswith(_TRANSIENT_CODES)
    words = str(error).lower()
    if "connection failed" in words or "failed to resolve" in words:
        return any(word in words for word in _TRANSIENT_WORDS)
    return True


def store_error(error: BaseException, target: PostgresTarget, run_id: str | None, waited: float) -> StateStoreError:
    """Turn an error of psycopg, or of time that ran out, into ours."""
    subject = f"the PostgreSQL store {target.name!r}" + (f" (run {run_id!r})" if run_id is not None else "")
    code = getattr(error, "sqlstate", None) or ""
    if code in ("XX001", "XX002"):  # data_corrupted, index_corrupted; XX000 is said of anything
        return CorruptCheckpointError(
            f"{subject} is damaged: {_message(error)} ({code}). It is left as it is; restore it from a backup, or name "
            "another schema.",
            run_id=run_id,
        )
    what = _message(error) if not isinstance(error, TimeoutError) else str(error) or "it does not answer"
    spent = f" It was tried for {waited:.1f} s (timeout {target.timeout:g} s)." if is_transient(error) else ""
    kind = ReadOnlyStoreError if code == _READ_ONLY else StateStoreError
    return kind(
        f"{subject} failed: {what} ({code or type(error).__name__}); {_advice(error, code)}.{spent} Nothing of this "
        "call was acknowledged; resume the run once the store works again.",
        run_id=run_id,
    )


def _message(error: BaseException) -> str:
    # Details and hints may quote what is stored.
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    return str(primary or str(error).strip().replace("\n", " ") or type(error).__name__).rstrip(".")


def _advice(error: BaseException, code: str) -> str:
    words = str(error).lower()
    if not code:
        code = next((found for part, found in _ADVICE_BY_WORDS if part in words), "")
    for prefix, advice in _ADVICE:
        if code.startswith(prefix):
            return advice
    if "ssl" in words or "certificate" in words:
        return "check sslmode, sslrootcert and the certificates on both sides"
    if "resolve" in words or "name or service" in words:
        return "check the host in the URL"
    if is_transient(error):
        return "check that the server runs and can be reached at this host and port"
    return "see the cause above"
