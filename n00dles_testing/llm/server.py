"""The server process: `python -m n00dles_testing.llm.server`, started by `LLMServer`.

It reads its settings as one line of JSON from stdin, writes its port as one line to stdout, and ends when stdin does,
or when its parent is gone. It listens on the loopback interface only, and imports nothing but the standard library.

Paths: `/<channel>/v1/{chat/completions,responses,messages}` for clients (the channel may be left out), and
`/control/<secret>/<channel>/{report,reset,script,kill}` for tests.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from .calls import LLMCall, Reply
from .channels import ArmedKill, Channel
from .client_process import client_process
from .delivery import deliver
from .faults import Hangs, KillsClient
from .known_shapes import shape_for
from .other_requests import advice, answered
from .replies import ReplySource
from .shapes import Answer, Shape, TurnedDownError, callers_in, unread
from .written import written

__all__ = ["Server", "main"]

_PATIENCE = 5.0


class Server(ThreadingHTTPServer):
    """All channels, and the socket that they are reached through."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, secret: str, script: list[Reply], *, automatic: bool, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.secret = secret
        self._source: Callable[[], ReplySource] = lambda: ReplySource(script, automatic=automatic)
        self._channels: dict[str, Channel] = {}
        self._lock = threading.Lock()
        self._parent = os.getppid()

    def channel(self, name: str) -> Channel:
        """Return the channel of that name, made at its first use."""
        with self._lock:
            if name not in self._channels:
                self._channels[name] = Channel(name, self._source)
            return self._channels[name]

    def service_actions(self) -> None:
        """End with the parent. A fork of the parent may hold stdin open; so its end alone is not enough."""
        if os.getppid() != self._parent:
            os._exit(0)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about a client that is gone: killing clients is what this server is for."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm: ClassVar[bool] = True  # else the pieces of a streamed reply wait for each other

    def do_POST(self) -> None:
        if "Content-Length" not in self.headers:
            self.close_connection = True
            self._send(_json(411, {"error": {"message": "send the request with its Content-Length"}}))
            return
        self._respond(self.rfile.read(int(self.headers["Content-Length"])))

    def do_GET(self) -> None:
        self._respond(b"")

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""

    def _respond(self, raw: bytes) -> None:
        path = self.path.split("?")[0]
        if path.startswith("/control/"):
            self._send(self._control(path, raw))
            return
        shape = shape_for(path)
        if shape is None or self.command != "POST":
            self._turn_down(path)
            return
        self._call(shape, path.removesuffix(shape.path).removesuffix("/v1").strip("/"), raw)

    def _turn_down(self, path: str) -> None:
        """Answer a request that is no call of a model, and have the test that it belongs to know of it."""
        channel_name, _, rest = path.partition("/v1/")
        message = (
            f"{self.command} /v1/{rest} is not served here" if rest else f"{self.command} {path} is not served here"
        )
        message = ". ".join(filter(None, [f"{message}; what is: {answered()}", advice(path)]))
        if rest:
            self.server.channel(channel_name.strip("/")).turn_down(TurnedDownError(message, 404, unexpected=True))
        self._send(_json(404, {"error": {"message": message}}))

    def _call(self, shape: Shape, channel_name: str, raw: bytes) -> None:
        channel = self.server.channel(channel_name)
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            request = shape.read(raw, headers)
        except TurnedDownError as error:
            node, agent = callers_in(headers)
            channel.turn_down(error, unread(shape.name, raw, node=node, agent=agent))
            self._send(shape.turned_down(error))
            return
        try:
            call, completion = channel.pay(request)
        except TurnedDownError as error:
            self._send(shape.turned_down(error))
            return
        if isinstance(completion.fault, KillsClient):
            self._kill_client(channel, call)
        if call.killed or isinstance(completion.fault, KillsClient):
            self.close_connection = True
            channel.settle(call, sent=False)
            return
        if isinstance(completion.fault, Hangs):
            channel.settle(call, sent=False)  # now: whoever asks for the journal must not hang as well
        try:
            answer = written(shape, request, completion, f"{channel.name}{call.n:08d}")
            sent = deliver(self.connection, answer, completion.fault)
        except OSError as error:
            channel.settle(call, sent=False, note=f"the client was gone: {error}")
            raise
        self.close_connection |= not sent
        channel.settle(call, sent=sent)

    def _kill_client(self, channel: Channel, call: LLMCall) -> None:
        try:
            channel.kill(call, ArmedKill(client_process(self.connection), 1))
        except (OSError, ValueError) as error:
            channel.fail(call, f"the client could not be killed: {error}")

    def _control(self, path: str, raw: bytes) -> Answer:
        _, _, secret, *channel_name, verb = path.split("/")
        if secret != self.server.secret:
            return _json(403, {"error": "wrong secret"})
        channel = self.server.channel("/".join(channel_name))
        match verb:
            case "report":
                return _json(200, channel.report(_PATIENCE))
            case "reset":
                channel.reset()
                return _json(200, {})
            case "script":
                wanted = json.loads(raw)
                replies = [Reply.from_dict(each) for each in wanted["replies"]]
                channel.script(replies, automatic=wanted["automatic"], name=wanted["name"])
                return _json(200, {})
            case "kill":
                wanted = json.loads(raw)
                try:
                    channel.arm(ArmedKill(wanted["pid"], wanted["request"], wanted.get("key", "")))
                except (ValueError, OSError) as error:
                    return _json(409, {"error": str(error)})
                return _json(200, {})
        return _json(404, {"error": f"no control {verb!r}"})

    def _send(self, answer: Answer) -> None:
        deliver(self.connection, answer)


def _json(status: int, value: Any) -> Answer:
    return Answer(status, "application/json", [json.dumps(value).encode()])


def _end_with_stdin() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    """Read the settings, say the port, serve until stdin ends."""
    settings = json.loads(sys.stdin.buffer.readline())
    script = [Reply.from_dict(reply) for reply in settings["script"]]
    try:
        server = Server(settings["secret"], script, automatic=settings["automatic"], port=settings["port"])
    except (OSError, OverflowError) as error:
        sys.exit(f"the fake LLM server cannot listen on port {settings['port']}: {error}")
    with server:
        sys.stdout.write(f"{server.server_address[1]}\n")
        sys.stdout.flush()
        threading.Thread(target=_end_with_stdin, daemon=True).start()
        server.serve_forever()


if __name__ == "__main__":
    main()
