"""As whom PostgreSQL is run: it refuses uid 0, and needs a uid that has a name."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys

from .errors import ServerUnavailableError

__all__ = ["user_for_postgres"]

_PROBE = "import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare(0x10000000) != 0)"


def user_for_postgres() -> dict[str, int] | None:
    """Return the identity to take (see `keeper.become`), None for the own one.

    As root a user namespace gives another name to the same user, so that files and signals stay as they are. Where the
    machine forbids that, root becomes `nobody`. Raises `ServerUnavailableError` if neither is possible.
    """
    uid = os.getuid()
    if uid != 0 and _has_name(uid):
        return None
    stand_in = _stand_in()
    if stand_in is not None and may_map():
        return {"inside": stand_in.pw_uid, "inside_gid": stand_in.pw_gid}
    if uid == 0 and stand_in is not None:
        return {"uid": stand_in.pw_uid, "gid": stand_in.pw_gid}
    raise ServerUnavailableError(
        f"PostgreSQL cannot be run as uid {uid} here: it refuses root and users without a name, and this machine "
        "allows no user namespaces. Run the tests as an ordinary user"
    )


def may_map() -> bool:
    """Whether a process may have a user namespace of its own; containers often forbid it."""
    return subprocess.run([sys.executable, "-I", "-S", "-c", _PROBE], check=False).returncode == 0


def _has_name(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _stand_in() -> pwd.struct_passwd | None:
    others = [entry for entry in pwd.getpwall() if entry.pw_uid != 0]
    return next((entry for entry in others if entry.pw_name == "nobody"), others[0] if others else None)
