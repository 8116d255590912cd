"""A real browser, driven over the pipe that Chromium offers to its parent: no port, no driver, no further package.

Messages of the DevTools protocol go over descriptors 3 and 4, each ended by a NUL. The browser is what
`N00DLES_CHROMIUM` names, or one of the usual names on PATH.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

__all__ = ["Browser", "Shown", "find_chromium"]

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
_SECONDS = 60.0
_BEYOND_3_AND_4 = 10


def find_chromium() -> str | None:
    """Return the path of a Chromium, or None."""
    named = os.environ.get("N00DLES_CHROMIUM")
    return named or next((path for name in _NAMES if (path := shutil.which(name))), None)


@dataclass
class Shown:
    """A page as the browser has shown it: what it wrote to its console, and what it asked for over the network."""

    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


class Browser:
    """A browser with a profile of its own, ended on leaving."""

    def __init__(self, program: str, profile: Path) -> None:
        ours, its = os.pipe(), os.pipe()
        self._out = fcntl.fcntl(ours[1], fcntl.F_DUPFD_CLOEXEC, _BEYOND_3_AND_4)
        self._in = fcntl.fcntl(its[0], fcntl.F_DUPFD_CLOEXEC, _BEYOND_3_AND_4)
        child_reads = fcntl.fcntl(ours[0], fcntl.F_DUPFD_CLOEXEC, _BEYOND_3_AND_4)
        child_writes = fcntl.fcntl(its[1], fcntl.F_DUPFD_CLOEXEC, _BEYOND_3_AND_4)
        for fd in (*ours, *its):
            os.close(fd)
        null = os.open(os.devnull, os.O_RDWR)
        places = [(null, 0), (null, 1), (null, 2), (child_reads, 3), (child_writes, 4)]
        self._pid = os.posix_spawn(
            program,
            [program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, fd, place) for fd, place in places],
            setsid=True,
        )
        for fd in (null, child_reads, child_writes):
            os.close(fd)
        self._buffer = b""
        self._number = 0
        self._events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank", session=None)["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True, session=None)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        os.close(self._out)
        os.close(self._in)
        os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)

    def ask(self, method: str, *, session: str | None = "", **arguments: Any) -> dict[str, Any]:
        """Send a command of the protocol and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": arguments}
        if session is not None:
            message["sessionId"] = session or self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != self._number:
            self._events.append(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    def show(self, page: Path, *, width: int = 1280, height: int = 800, dark: bool = False, scale: float = 1) -> Shown:
        """Load a page from a file, in a window of this size and in this colour scheme."""
        self._events.clear()
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 500,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Page.navigate", url=page.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._events.append(self._receive())
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        shown = Shown()
        for event in self._events:
            if event["method"] in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
                shown.messages.append(json.dumps(event["params"]))
            if event["method"] == "Network.requestWillBeSent":
                shown.requests.append(event["params"]["request"]["url"])
        return shown

    def value(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; the page's own policy does not hold for it."""
        answer = self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def picture(self, file: Path, *, whole: bool = False) -> None:
        """Write a PNG of what is in the window, or of the whole page."""
        data = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        file.write_bytes(base64.b64decode(data))

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + _SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"the browser said nothing for {_SECONDS} s"
            chunk = os.read(self._in, 1 << 16)
            assert chunk, "the browser has ended"
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        form: dict[str, Any] = json.loads(message)
        return form
