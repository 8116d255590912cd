"""Tests of the real API: what `--n00dles-live` and `--n00dles-record` do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from .llm.live import LiveLLM
from .llm.script_file import plain_entry, write_script
from .llm.secrets_removed import without_secrets

__all__ = ["Recorder", "is_live", "overheard"]

_RECORDER = "n00dles-recorder"


def is_live(request: pytest.FixtureRequest) -> bool:
    """Whether the test of `request` is marked for the real API, and this run goes there."""
    marked = request.node.get_closest_marker("n00dles_live") is not None
    return marked and bool(request.config.getoption("n00dles_live"))


@contextmanager
def overheard(request: pytest.FixtureRequest) -> Iterator[LiveLLM]:
    """Give a live test what stands in for its mock, and keep the replies if they are recorded."""
    live = LiveLLM()
    with live.started():
        yield live
    recorder: Any = request.config.pluginmanager.get_plugin(_RECORDER)
    if recorder is not None:
        recorder.keep(live)


class Recorder:
    """Writes what live tests were answered, at the end of the run."""

    def __init__(self, config: pytest.Config, file: str) -> None:
        if not config.getoption("n00dles_live"):
            raise pytest.UsageError("--n00dles-record keeps what the real API says; add --n00dles-live")
        if hasattr(config, "workerinput") or getattr(config.option, "numprocesses", None):
            raise pytest.UsageError("--n00dles-record writes one file, in order; run it without -n")
        self._file = Path(file).absolute()
        self._entries: list[dict[str, Any]] = []
        self._lost: list[str] = []

    def keep(self, live: LiveLLM) -> None:
        """Add the replies of a test, without secrets."""
        self._entries += without_secrets([plain_entry(reply) for reply in live.replies], live.secrets)
        self._lost += live.lost

    def pytest_sessionfinish(self) -> None:
        """Write the file, if there is anything to write."""
        if self._entries:
            write_script(self._file, self._entries)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what was written."""
        for lost in self._lost:
            terminalreporter.write_line(f"n00dles: {lost}", yellow=True)
        count = len(self._entries)
        written = f"{count} replies of the real API were written to {self._file}; read it before you share it"
        nothing = f"nothing was recorded, so {self._file} was not written"
        terminalreporter.write_line(f"n00dles: {written if count else nothing}", yellow=not count)
