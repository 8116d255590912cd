"""The server process: `python -m n00dles_testing.llm.server`, started by `LLMServer`.

It reads its settings as one line of JSON from stdin, writes its port as one line to stdout, and ends when stdin does,
or when its parent is gone. It listens on the loopback interface only, and imports nothing but the standard library.

Paths: `/<channel>/v1/chat/completions` and `/<channel>/v1/messages` for clients (the channel may be left out), and
`/control/<secret>/<channel>/{report,reset,kill}` for tests.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from . import delivery
from .anthropic_shape import AnthropicShape
from .calls import Reply
from .channels import ArmedKill, Channel
from .openai_shape import OpenAIShape
from .replies import ReplySource
from .shapes import Answer, Shape, TurnedDownError

__all__ = ["Server", "main"]

_SHAPES: tuple[Shape, ...] = (OpenAIShape(), AnthropicShape())
_PATIENCE = 5.0


class Server(ThreadingHTTPServer):
    """All channels, and the socket that they are reached through."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, secret: str, script: list[Reply], *, automatic: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.secret = secret
        self.deliver: delivery.Delivery = delivery.whole
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
        shape = next((shape for shape in _SHAPES if path.endswith(shape.path)), None)
        if shape is None or self.command != "POST":
            self._send(_json(404, {"error": {"message": f"{self.command} {path} is not served here"}}))
            return
        self._call(shape, path.removesuffix(shape.path).strip("/"), raw)

    def _call(self, shape: Shape, channel_name: str, raw: bytes) -> None:
        channel = self.server.channel(channel_name)
        try:
            request = shape.read(raw, {name.lower(): value for name, value in self.headers.items()})
            call, completion = channel.pay(request)
        except TurnedDownError as error:
            self._send(shape.error(error.status, str(error)))
            return
        if call.killed:
            self.close_connection = True
            channel.settle(call, sent=False)
            return
        try:
            self._send(shape.answer(request, completion, f"{channel.name}{call.n:08d}"))
        except OSError as error:
            channel.settle(call, sent=False, note=f"the client was gone: {error}")
            raise
        channel.settle(call, sent=True)

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
            case "kill":
                wanted = json.loads(raw)
                try:
                    channel.arm(ArmedKill(wanted["pid"], wanted["request"], wanted.get("key", "")))
                except (ValueError, OSError) as error:
                    return _json(409, {"error": str(error)})
                return _json(200, {})
        return _json(404, {"error": f"no control {verb!r}"})

    def _send(self, answer: Answer) -> None:
        if not self.server.deliver(self.connection, answer):
            self.close_connection = True


def _json(status: int, value: Any) -> Answer:
    return Answer(status, "application/json", [json.dumps(value).encode()])


def _end_with_stdin() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    """Read the settings, say the port, serve until stdin ends."""
    settings = json.loads(sys.stdin.buffer.readline())
    script = [Reply(**reply) for reply in settings["script"]]
    with Server(settings["secret"], script, automatic=settings["automatic"]) as server:
        sys.stdout.write(f"{server.server_address[1]}\n")
        sys.stdout.flush()
        threading.Thread(target=_end_with_stdin, daemon=True).start()
        server.serve_forever()


if __name__ == "__main__":
    main()
