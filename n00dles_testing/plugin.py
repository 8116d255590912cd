"""The pytest plugin: the `crash_safety` fixture, and one line at the end that says what was really killed.

Loaded by its entry point in every pytest run, so it imports nothing but pytest until a test asks for something.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .crash import CrashSafety
    from .fixtures import LazyLLM

__all__ = ["crash_safety"]

_PROPERTY = "n00dles_"
_UNKNOWN = f"{_PROPERTY}could_not_be_told"
_tally = pytest.StashKey[Counter[str]]()
_untold = pytest.StashKey[list[str]]()


@pytest.fixture
def crash_safety(request: pytest.FixtureRequest, n00dles_llm: LazyLLM) -> Iterator[CrashSafety]:
    """Kill a pipeline at each of its crash points, resume it, and fail if the resume pays twice, loses or mistypes.

        def test_survives(crash_safety):
            crash_safety.check(content_pipeline, topic="agentic search")

    Each scenario has a store of its own. Models without a provider of your own are answered by a fake LLM server.
    """
    from .fixtures import PluginCrashSafety, counts

    safety = PluginCrashSafety(n00dles_llm)
    yield safety
    # Properties travel from a worker of xdist to its master, and into a JUnit file.
    for name, count in counts(safety.reports).items():
        request.node.user_properties.append((f"{_PROPERTY}{name}", count))
    for report in safety.reports:
        if report.unknown:
            request.node.user_properties.append((_UNKNOWN, f"{report.target}: {report.unknown}"))


@pytest.fixture(scope="session")
def n00dles_llm() -> Iterator[LazyLLM]:
    """A fake LLM server for the whole session, started when the first pipeline needs it."""
    from .fixtures import LazyLLM

    llm = LazyLLM()
    yield llm
    llm.stop()


@pytest.hookimpl
def pytest_configure(config: pytest.Config) -> None:
    """Start counting, in the process that writes the summary."""
    if hasattr(config, "workerinput"):
        return
    config.stash[_tally] = Counter()
    config.stash[_untold] = []
    config.pluginmanager.register(_Counting(config.stash[_tally], config.stash[_untold]), "n00dles-counting")


class _Counting:
    def __init__(self, tally: Counter[str], untold: list[str]) -> None:
        self._tally = tally
        self._untold = untold

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up what a test has left in its properties; they are complete with its teardown."""
        if report.when == "teardown":
            for name, count in report.user_properties:
                if name == _UNKNOWN:
                    self._untold.append(str(count))
                elif name.startswith(_PROPERTY) and isinstance(count, int):
                    self._tally[name.removeprefix(_PROPERTY)] += count


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what was killed, if anything was."""
    tally = config.stash.get(_tally, Counter())
    if not tally["crash_points"]:
        return
    parts = [f"{tally['killed']} crash points killed by SIGKILL"] if tally["killed"] else []
    if tally["simulated"]:
        parts.append(f"{tally['simulated']} deaths simulated in-process")
    if others := tally["crash_points"] - tally["killed"] - tally["simulated"]:
        parts.append(f"{others} crash points where nothing was killed")
    parts.append(f"{tally['re_calls']} re-calls")
    if unknown := tally["unknown"]:
        parts.append(f"{unknown} clause{'s' if unknown > 1 else ''} UNKNOWN")
    colour = "red" if tally["re_calls"] or others else "yellow" if unknown else "green"
    terminalreporter.write_line(f"n00dles: {', '.join(parts)}", **{colour: True})
    untold: list[str] = config.stash[_untold]
    for sentence in dict.fromkeys(untold):
        terminalreporter.write_line(f"n00dles: {sentence}", yellow=True)
