"""A script on a fake LLM server, written line by line: what stands behind the fixture `llm_server`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .calls import LLMCall, Reply
from .client import LLMServer, ScriptError
from .scripting import Scripted

__all__ = ["ScriptedServer"]


class ScriptedServer(Scripted):
    """One channel of a running server, with a script of its own: what others do there is not seen here.

        with LLMServer() as server, ScriptedServer(server, "mine").checked() as llm:
            llm.reply("researcher", "Three facts.")
            run(content_pipeline, topic="x", store="memory://")

    Clients find it by `environment`, which the `with` block sets in `os.environ`; a process that is started there
    inherits it. Which node calls is known of calls by n00dles' providers, and of clients that send the header
    `N00dles-Node`; replies for others have None as their node.
    """

    name = "llm_server"

    def __init__(self, server: LLMServer, channel: str) -> None:
        self._server = server
        self._channel = channel
        server.reset(channel)
        server.script(channel, automatic=False, name=self.name)

    @contextmanager
    def started(self) -> Iterator[ScriptedServer]:
        """Set the environment in the `with` block."""
        with self._server.in_environment(self._channel):
            yield self

    @contextmanager
    def checked(self) -> Iterator[ScriptedServer]:
        """Like `started`, and raise `ScriptError` at the end if a call had no reply or a reply was not asked for."""
        with self.started():
            yield self
        if problems := self.problems():
            raise ScriptError("\n".join(problems))

    @property
    def url(self) -> str:
        """Where the server listens."""
        return self._server.url

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables with which clients find it, for a program that does not inherit them."""
        return self._server.environment_of(self._channel)

    @property
    def calls(self) -> list[LLMCall]:
        """Every call so far, in order, also those that got an error (`paid` is then false).

        Waits until no reply is on its way, for 5 seconds at most.
        """
        return self._server.calls(self._channel)

    @property
    def unused(self) -> list[Reply]:
        """The entries that have been used less often than they say."""
        return self._server.unused(self._channel)

    def arm_kill(self, pid: int, *, request: int = 1, key: str = "") -> None:
        """Have the process `pid` killed at a coming request; see the function `arm_kill`."""
        self._server.arm_kill(pid, request=request, key=key, channel=self._channel)

    def _add(self, reply: Reply) -> None:
        self._server.script(self._channel, [reply], automatic=False, name=self.name)
