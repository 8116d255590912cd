"""What can go wrong with a server for tests."""

from __future__ import annotations

__all__ = ["ServerError", "ServerUnavailableError"]


class ServerError(Exception):
    """A server for tests did not start, did not answer, or was used in a state that it is not in."""


class ServerUnavailableError(ServerError):
    """There is no such server on this machine, or it cannot be run here. The message says what was looked for."""
