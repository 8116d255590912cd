"""The side of the tests: start the server, ask what was paid, arm a kill."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

from .calls import LLMCall, Reply

__all__ = ["LLMServer", "ScriptError", "arm_kill"]

_START_SECONDS = 30.0
_CONTROL_SECONDS = 30.0


class ScriptError(AssertionError):
    """The calls that came are not those of the script: one had no reply, or a reply was not asked for."""


class LLMServer:
    """A fake LLM server in a process of its own; a context manager.

    Without `script`, every reply is made up from its request. With one (texts, or `Reply`s with patterns), the first
    entry that fits answers, and a request that none fits gets HTTP 400; `automatic=True` makes up a reply then. Leaving
    the `with` block raises `ScriptError` if a request had no reply or an entry was not used.

    The server ends with this process, however that ends. It listens on the loopback interface only, on `port`, or on a
    free one.
    """

    def __init__(
        self, script: Sequence[str | Reply] | None = None, *, automatic: bool | None = None, port: int = 0
    ) -> None:
        self._script = [Reply.of(entry) for entry in script or ()]
        self._strict = script is not None
        self._automatic = script is None if automatic is None else automatic
        self._secret = secrets.token_hex(8)
        self._process: subprocess.Popen[bytes] | None = None
        self._port = port
        self._channels: set[str] = set()

    def start(self) -> None:
        """Start the process and wait until it listens. Raises `RuntimeError` if it does not."""
        if self._process is not None:
            raise RuntimeError("this fake LLM server runs already; make another LLMServer for a second one")
        package_root = str(Path(__file__).parents[2])
        settings = {
            "secret": self._secret,
            "script": [reply.to_dict() for reply in self._script],
            "automatic": self._automatic,
            "port": self._port,
        }
        self._process = subprocess.Popen(
            # -P: a json.py in the working folder must not be taken for the standard one.
            [sys.executable, "-P", "-m", f"{__package__}.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": package_root},
            start_new_session=True,  # Ctrl-C is for the tests; the journal must still be there to be read
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(settings).encode() + b"\n")
        self._process.stdin.flush()
        said = self._process.stdout.readline()
        if not said:
            self.stop()
            raise RuntimeError("the fake LLM server did not start; what it said stands on stderr above")
        self._port = int(said)

    def stop(self) -> None:
        """End the process. May be called twice."""
        if self._process is None:
            return
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.kill()
        self._process.wait()
        self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None and self._strict:
                for channel in self._channels or {""}:
                    self.verify(channel)
        finally:
            self.stop()

    @property
    def pid(self) -> int | None:
        """The pid of the server's process, while it runs."""
        return self._process.pid if self._process is not None else None

    @property
    def url(self) -> str:
        """Where it listens: `http://127.0.0.1:<port>`."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables with which clients find it; see `environment_of`."""
        return self.environment_of("")

    def environment_of(self, channel: str) -> dict[str, str]:
        """The same for a channel of one's own: its calls, script and kill are apart from those of every other."""
        self._channels.add(channel)
        base = f"{self.url}/{_quoted(channel)}".rstrip("/")
        apart_from_proxies = ",".join(filter(None, [os.environ.get("NO_PROXY"), "127.0.0.1"]))
        return {
            "OPENAI_BASE_URL": f"{base}/v1",
            "OPENAI_API_KEY": "sk-fake",
            "ANTHROPIC_BASE_URL": base,
            "ANTHROPIC_API_KEY": "sk-ant-fake",
            "N00DLES_LLM_CONTROL": self.control_url(channel),
            "NO_PROXY": apart_from_proxies,
            "no_proxy": apart_from_proxies,
        }

    @contextmanager
    def in_environment(self, channel: str = "") -> Iterator[Self]:
        """Put `environment_of(channel)` into `os.environ` for the length of a block."""
        wanted = self.environment_of(channel)
        before = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)
        try:
            yield self
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value

    def control_url(self, channel: str = "") -> str:
        """The URL for `arm_kill`; a secret part of it keeps other users of the machine out."""
        return f"{self.url}/control/{self._secret}/{_quoted(channel)}".rstrip("/")

    def journal(self, channel: str = "") -> list[LLMCall]:
        """Return what was paid, in order. Waits until no reply is on its way."""
        return [call for call in self.calls(channel) if call.paid]

    def turned_down(self, channel: str = "") -> list[LLMCall]:
        """Return the requests that were not paid, in order: scripted faults and errors, and those without a reply."""
        return [call for call in self.calls(channel) if not call.paid]

    def calls(self, channel: str = "") -> list[LLMCall]:
        """Return all requests, in order, paid or not. Waits until no reply is on its way."""
        return [LLMCall.from_dict(call) for call in _post(self.control_url(channel), "report", {})["calls"]]

    def unused(self, channel: str = "") -> list[Reply]:
        """Return the entries of the script that have not been used as often as they say."""
        return [Reply.from_dict(reply) for reply in _post(self.control_url(channel), "report", {})["unused"]]

    def verify(self, channel: str = "") -> None:
        """Raise `ScriptError` if a request had no reply, or an entry of the script was not used."""
        unexpected = [call for call in self.calls(channel) if call.unexpected]
        unused = self.unused(channel)
        if unexpected:
            raise ScriptError(f"{len(unexpected)} unexpected request(s), the first: {unexpected[0].note}")
        if unused:
            raise ScriptError(f"{len(unused)} entries of the script were not used, the first: {unused[0]!r}")

    def script(self, channel: str, replies: Sequence[Reply] = (), *, automatic: bool = False, name: str = "") -> None:
        """Append entries to a channel's script. `automatic`: what it does not have is made up.

        `name` is what the script is called in messages.
        """
        entries = [reply.to_dict() for reply in replies]
        _post(self.control_url(channel), "script", {"replies": entries, "automatic": automatic, "name": name})

    def reset(self, channel: str = "") -> None:
        """Forget all calls and the armed kill, and start the script anew."""
        _post(self.control_url(channel), "reset", {})

    def arm_kill(self, pid: int, *, request: int = 1, key: str = "", channel: str = "") -> None:
        """Have the server kill `pid` at a coming request; see the function `arm_kill`."""
        arm_kill(self.control_url(channel), pid, request=request, key=key)


def arm_kill(control_url: str, pid: int, *, request: int = 1, key: str = "") -> None:
    """Have the server send SIGKILL to `pid` when the next request of the channel comes (or the `request`-th from now).

    With `key`, only requests with that Idempotency-Key count: others that are on their way at the time are let through.
    The call is then paid and recorded, and no byte of its reply is sent. A forked child calls this for itself, with the
    URL in `N00DLES_LLM_CONTROL` and `os.getpid()`; the kill is armed when this returns. A later one replaces it. Raises
    `RuntimeError` if the server refuses, for example because there is no such process.
    """
    _post(control_url, "kill", {"pid": pid, "request": request, "key": key})


def _post(control_url: str, verb: str, body: dict[str, Any]) -> dict[str, Any]:
    # Not urllib.request: it would follow proxy settings, and a proxy does not lead here.
    place = urlsplit(control_url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=_CONTROL_SECONDS)
    try:
        connection.request("POST", f"{place.path}/{verb}", body=json.dumps(body))
        response = connection.getresponse()
        answer: dict[str, Any] = json.loads(response.read())
    except OSError as error:
        raise RuntimeError(f"the fake LLM server at {control_url} cannot be reached: {error}") from error
    finally:
        connection.close()
    if response.status != http.client.OK:
        raise RuntimeError(f"the fake LLM server refused {verb!r}: {answer.get('error')}")
    return answer


def _quoted(channel: str) -> str:
    return quote(channel, safe="")
