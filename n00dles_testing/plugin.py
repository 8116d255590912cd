"""The pytest plugin: the `crash_safety` fixture, the `crash_safe` marker, and a last line on what was really killed.

Loaded by its entry point in every pytest run, so it imports nothing but pytest until a test asks for something.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .crash import CrashSafety
    from .fixtures import LazyLLM

__all__ = ["crash_safety"]

_MARKER = "crash_safe"
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

    defaults: dict[str, Any] = {}
    for mark in request.node.iter_markers(_MARKER):  # the closest comes first
        if not mark.args:
            defaults = {**mark.kwargs, **defaults}
    safety = PluginCrashSafety(n00dles_llm, defaults)
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


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give a test with the marker the fixture that makes its check."""
    if isinstance(item, pytest.Function) and _marked(item) and "crash_safety" not in item.fixturenames:
        item.fixturenames.append("crash_safety")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Make the checks of a test's markers before its body: it fails if one of them does."""
    __tracebackhide__ = True
    if isinstance(item, pytest.Function):
        for mark in _marked(item):
            safety: Any = item.funcargs["crash_safety"]
            safety.check(*mark.args, **mark.kwargs)


def _marked(item: pytest.Item) -> list[pytest.Mark]:
    """Return the markers that name a pipeline, the outermost first."""
    return [mark for mark in item.iter_markers(_MARKER) if mark.args][::-1]


@pytest.hookimpl
def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; start counting, in the process that writes the summary."""
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(pipeline=None, *, inputs=…, lives=1, how='kill', budget=None, at=None, mode=None, **inputs): kill "
        "and resume this pipeline before the test runs, and fail it if a clause is broken; without a pipeline, the "
        "defaults of crash_safety.check in this test.",
    )
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
    if not tally["crash_points"] and not tally["disturbances"]:
        return
    parts = [f"{tally['killed']} crash points killed by SIGKILL"] if tally["killed"] else []
    if tally["simulated"]:
        parts.append(f"{tally['simulated']} deaths simulated in-process")
    if tally["disturbed"]:
        parts.append(f"{tally['disturbed']} other disturbances")
    alive = tally["crash_points"] - tally["killed"] - tally["simulated"]
    if alive:
        parts.append(f"{alive} crash points where nothing was killed")
    if missed := tally["disturbances"] - tally["disturbed"]:
        parts.append(f"{missed} disturbances that did not happen")
    parts.append(f"{tally['re_calls']} re-calls")
    if unknown := tally["unknown"]:
        parts.append(f"{unknown} clause{'s' if unknown > 1 else ''} UNKNOWN")
    colour = "red" if tally["re_calls"] or alive or missed else "yellow" if unknown else "green"
    terminalreporter.write_line(f"n00dles: {', '.join(parts)}", **{colour: True})
    untold: list[str] = config.stash[_untold]
    for sentence in dict.fromkeys(untold):
        terminalreporter.write_line(f"n00dles: {sentence}", yellow=True)
