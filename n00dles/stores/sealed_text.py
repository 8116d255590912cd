"""Texts that a server keeps, each behind a checksum over itself, its run and what it is; the error of a damaged run.

The checksum says that a text is the one that was stored, for this run and in this place: not one that was cut, changed
by hand, or moved there from another run.
"""

from __future__ import annotations

import zlib

from ..errors import CorruptCheckpointError

__all__ = ["damaged", "opened", "sealed", "unsealed"]

_CHECKSUM = 8  # characters


def sealed(run_id: str, what: str, content: str) -> bytes:
    """Return `content` behind its checksum. `what` names it in its run; its first word is what an error calls it."""
    body = content.encode()
    return b"%08x%b" % (_checksum(run_id, what, body), body)


def opened(run_id: str, what: str, text: bytes) -> str:
    """Return the content of a sealed text, as bytes or as a driver's view of them.

    Raises `CorruptCheckpointError` if it is another one.
    """
    body = unsealed(text)
    if bytes(text)[:_CHECKSUM] != b"%08x" % _checksum(run_id, what, body):
        raise damaged(run_id, f"its field {what.partition(' ')[0]!r} does not match its checksum")
    return body.decode()


def unsealed(text: bytes) -> bytes:
    """Return the content of a sealed text, unproven: for lists, which tell nothing of damage."""
    return bytes(text)[_CHECKSUM:]


def damaged(run_id: str, what: str) -> CorruptCheckpointError:
    """Return the error for a run that is not as it was stored."""
    return CorruptCheckpointError(
        f"the stored record of run {run_id!r} is damaged: {what}. It is left as it is; restore it from a backup, or "
        f"delete the run and start it anew (n00dles runs delete {run_id}).",
        run_id=run_id,
    )


def _checksum(run_id: str, what: str, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(f"{what}|{run_id}".encode()))
