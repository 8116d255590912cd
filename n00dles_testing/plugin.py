"""The pytest plugin: the `crash_safety` fixture, the `crash_safe` marker, and the contract of a store as tests.

Its last lines say what was really killed, and which level a store has reached. Pytest finds the fixtures of
`isolating` here, too.

Loaded by its entry point in every pytest run, so it imports nothing but pytest until a test asks for something.
"""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError
from collections import Counter
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from .isolating import (
    frozen_time,
    llm_server,
    mock_llm,
    n00dles_folder,
    n00dles_llm,
    n00dles_store,
    no_network,
    no_sleep,
)

if TYPE_CHECKING:
    from .crash import CrashSafety
    from .fixtures import LazyLLM, PluginCrashSafety
    from .no_network import NetworkGuard
    from .servers import PostgresServer, ValkeyServer
    from .servers.shared import SharedServers

__all__ = [
    "crash_safety",
    "frozen_time",
    "llm_server",
    "mock_llm",
    "n00dles_folder",
    "n00dles_llm",
    "n00dles_store",
    "no_network",
    "no_sleep",
    "postgres_server",
    "valkey_server",
]

_MARKER = "crash_safe"
_LIVE = "n00dles_live"
_NOT_LIVE = "calls the real API, which costs money: run with --n00dles-live"
_LEVELS = (1, 2, 3, 4)
_SHORTEST_LIMIT = 0.1
_PROPERTY = "n00dles_"
_UNKNOWN = f"{_PROPERTY}could_not_be_told"
_TWICE = f"{_PROPERTY}may_run_twice"
_UNPATCHED = f"{_PROPERTY}unpatched"
_DEFAULT_STORE = f"{_PROPERTY}default_store"
_tally = pytest.StashKey[Counter[str]]()
_sentences = pytest.StashKey[dict[str, list[str]]]()
_clauses = pytest.StashKey[list[dict[str, str]]]()
_stopped = pytest.StashKey[bool]()
_safety: pytest.StashKey[PluginCrashSafety] = pytest.StashKey()


@pytest.fixture
def crash_safety(
    request: pytest.FixtureRequest, n00dles_llm: LazyLLM, no_network: NetworkGuard | None
) -> Iterator[CrashSafety]:
    """Kill a pipeline at each of its crash points, resume it, and fail if the resume pays twice, loses or mistypes.

        def test_survives(crash_safety):
            crash_safety.check(content_pipeline, topic="agentic search")

    Each scenario has a store of its own. Models without a provider of your own are answered by a fake LLM server.
    Nothing else is faked: bodies are run for real, a few times more often than there are crash points, in processes
    that import the pipeline anew, so monkeypatch and fixtures do not reach them. Switch by an environment variable, or
    use mode="in-process". What leaves this machine, in these processes too, fails the test (see `no_network`).
    """
    from .fixtures import PluginCrashSafety, counts, unpatched

    defaults: dict[str, Any] = {}
    for mark in request.node.iter_markers(_MARKER):  # the closest comes first
        if not mark.args:
            defaults = {**mark.kwargs, **defaults}
    safety = PluginCrashSafety(n00dles_llm, defaults)
    request.node.stash[_safety] = safety
    yield safety
    # Properties travel from a worker of xdist to its master, and into a JUnit file.
    for name, count in counts(safety.reports).items():
        request.node.user_properties.append((f"{_PROPERTY}{name}", count))
    for report in safety.reports:
        if report.unknown:
            request.node.user_properties.append((_UNKNOWN, f"{report.target}: {report.unknown}"))
        for sentence in report.may_run_twice:
            request.node.user_properties.append((_TWICE, f"{report.target}: {sentence}"))
    if sentence := unpatched(safety.reports, request.node.fixturenames):
        request.node.user_properties.append((_UNPATCHED, f"{request.node.nodeid}: {sentence}"))


@pytest.fixture(scope="session")
def n00dles_servers() -> Iterator[SharedServers]:
    """The servers of this process (with xdist: of this worker), each started when the first test needs it."""
    from .servers.shared import SharedServers

    servers = SharedServers()
    yield servers
    servers.stop()


@pytest.fixture
def postgres_server(n00dles_servers: SharedServers) -> PostgresServer:
    """A running PostgreSQL server whose database is empty; one for all tests. Skips where there is none.

        def test_saves(postgres_server):
            store = PostgresStateStore(postgres_server.url)

    A test may kill, pause or restart it: the next test finds it running.
    """
    return n00dles_servers.postgres()


@pytest.fixture
def valkey_server(n00dles_servers: SharedServers) -> ValkeyServer:
    """A running Valkey (or Redis) server that is empty, with appendfsync always; otherwise as `postgres_server`."""
    return n00dles_servers.valkey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options for stores; `n00dles-testing check` has them, too."""
    group = parser.getgroup("n00dles", "state stores (n00dles-testing)")
    group.addoption(
        "--n00dles-store",
        action="append",
        default=[],
        metavar="TARGET",
        help="Check this state store, clause by clause: a URL, package.module:factory, path/to/file.py:factory, or the "
        "name of an entry point. May be repeated. Without paths of tests, nothing else is collected.",
    )
    group.addoption("--n00dles-claims", metavar="FILE", help="What these stores claim, and their known gaps, in TOML.")
    group.addoption(
        "--n00dles-reader", metavar="MODULE:FUNCTION", help="An out-of-band reader of these stores' raw records."
    )
    group.addoption(
        "--n00dles-server",
        choices=["postgres", "valkey"],
        help="Start a throw-away server for these stores; each location is a URL on it.",
    )
    group.addoption("--n00dles-seed", type=int, default=0, metavar="N", help="Decides the values drawn (default: 0).")
    group.addoption(
        "--n00dles-limit",
        type=_seconds,
        default=20.0,
        metavar="SECONDS",
        help="A call of a store that takes longer is killed, and fails (default: 20).",
    )
    _add_live_options(parser)


def _add_live_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("n00dles-live", "models (n00dles-testing)")
    group.addoption(
        "--n00dles-live",
        action="store_true",
        help=f"Run the tests that are marked {_LIVE}, too, against the real API: mock_llm and llm_server let their "
        "calls through. This costs money.",
    )
    group.addoption(
        "--n00dles-record",
        metavar="FILE",
        help="With --n00dles-live: write the replies to FILE, a script that mock_llm.replay(FILE) plays. Keys, cookies "
        "and the names of organisations are left out.",
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not _SHORTEST_LIMIT <= seconds < float("inf"):
        raise ArgumentTypeError(f"{text!r} is no number of seconds, of at least {_SHORTEST_LIMIT}")
    return seconds


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> Generator[None, object, object]:
    """Collect subclasses of `StateStoreConformance`, whatever they are called, and their tests."""
    found = yield
    if f"{__package__}.store_tests.suite" not in sys.modules:  # so there are none
        return found
    from .store_tests.classes import collected

    return collected(collector, name, obj, found)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give a test with the marker the fixture that makes its check; leave out the tests of the real API."""
    if item.get_closest_marker(_LIVE) and not item.config.getoption("n00dles_live"):
        item.add_marker(pytest.mark.skip(reason=_NOT_LIVE))
    if isinstance(item, pytest.Function) and _marked(item) and "crash_safety" not in item.fixturenames:
        item.fixturenames.append("crash_safety")


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Make the checks of a test's markers before its body: it fails if one of them does, or if none is made."""
    __tracebackhide__ = True
    if isinstance(item, pytest.Function):
        for mark in _marked(item):
            safety: Any = item.funcargs["crash_safety"]
            safety.check(*mark.args, **mark.kwargs)
    result = yield
    safety = item.stash.get(_safety, None)
    if (_promises_a_check(item) or _asks_for_it(item)) and (safety is None or not safety.checks):
        reason = (
            f"is marked {_MARKER}, but nothing was tried: the marker names no pipeline, and the test did not call"
            if _promises_a_check(item)
            else "asks for crash_safety, but nothing was tried: it did not call"
        )
        pytest.fail(
            f"{item.name} {reason} crash_safety.check. Write @pytest.mark.{_MARKER}(your_pipeline, topic='…'), or "
            "check it in the test.",
            pytrace=False,
        )
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Find the tests that leave runs in the working folder, once all of their fixtures have been undone."""
    result = yield
    config = sys.modules.get("n00dles.config")  # not imported: so nothing was run
    if config is not None and (store := config.reopen_default_store()) is not None:
        from .isolation import left_in

        if file := left_in(store, item.config.invocation_params.dir):
            item.user_properties.append((_DEFAULT_STORE, f"{item.nodeid} wrote to {file}"))
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[object]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Leave the first line of a story for the summary and the JUnit message: the whole of it stands above already.

    Pytest cuts such lines at a terminal, and where `CI` is set it does not.
    """
    report = yield
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None and call.excinfo is not None and getattr(call.excinfo.value, "is_a_story", False):
        crash.message = crash.message.partition("\n")[0]
    return report


def _promises_a_check(item: pytest.Item) -> bool:
    """Whether it has a marker that is for it alone, or says nothing; others give a class or a module their defaults."""
    own = [mark for mark in item.own_markers if mark.name == _MARKER]
    return bool(own) or any(not mark.args and not mark.kwargs for mark in item.iter_markers(_MARKER))


def _asks_for_it(item: pytest.Item) -> bool:
    """Whether the fixture is an argument of the test itself: another fixture that has it may be asked for its own."""
    return isinstance(item, pytest.Function) and "crash_safety" in item._fixtureinfo.argnames


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
    config.addinivalue_line(
        "markers",
        "n00dles_network(*hosts): let this test use the network, or these hosts of it, though a fixture guards it.",
    )
    config.addinivalue_line("markers", f"{_LIVE}: call the real API of models; skipped unless --n00dles-live is given.")
    if file := config.getoption("n00dles_record"):
        from .live_tests import Recorder

        config.pluginmanager.register(Recorder(config, file), "n00dles-recorder")
    for number in _LEVELS:
        config.addinivalue_line("markers", f"n00dles_level{number}: a clause of level {number} of a state store.")
    if config.getoption("n00dles_store"):
        from .store_tests.items import StoreItems

        config.pluginmanager.register(StoreItems(config), "n00dles-store-items")
    elif said := [name for name in ("claims", "reader", "server") if config.getoption(f"n00dles_{name}")]:
        raise pytest.UsageError(f"--n00dles-{said[0]} is about the stores of --n00dles-store, and none is named")
    if hasattr(config, "workerinput"):
        return
    config.stash[_tally] = Counter()
    sentences: dict[str, list[str]] = {_UNPATCHED: [], _UNKNOWN: [], _TWICE: [], _DEFAULT_STORE: []}
    config.stash[_sentences] = sentences
    config.stash[_clauses] = []
    counting = _Counting(config.stash[_tally], sentences, config.stash[_clauses])
    config.pluginmanager.register(counting, "n00dles-counting")


class _Counting:
    def __init__(self, tally: Counter[str], sentences: dict[str, list[str]], clauses: list[dict[str, str]]) -> None:
        self._tally = tally
        self._sentences = sentences
        self._clauses = clauses

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up what a test has left in its properties; they are complete with its teardown."""
        if report.when == "teardown":
            properties = {name: str(value) for name, value in report.user_properties}
            if f"{_PROPERTY}target" in properties:
                self._clauses.append(properties)
            for name, count in report.user_properties:
                if name in self._sentences:
                    self._sentences[name].append(str(count))
                elif name.startswith(_PROPERTY) and isinstance(count, int):
                    self._tally[name.removeprefix(_PROPERTY)] += count


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail if a level is claimed, and not reached: that is known when all clauses have been tried, by any worker."""
    if clauses := session.config.stash.get(_clauses, []):
        from .store_tests.summary import unreached

        session.config.stash[_stopped] = bool(
            session.shouldfail or session.shouldstop or exitstatus == pytest.ExitCode.INTERRUPTED
        )
        if session.exitstatus == pytest.ExitCode.OK and unreached(clauses):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _tell_of_live_tests(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", ())
    if count := sum(_NOT_LIVE in str(report.longrepr) for report in skipped):
        terminalreporter.write_line(f"n00dles: {count} of the skipped tests would call the real API (--n00dles-live)")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what was killed, if anything was, and what is known of each store that was checked."""
    if clauses := config.stash.get(_clauses, []):
        from .store_tests.summary import sentences as about_stores

        for sentence, is_clean in about_stores(clauses, was_stopped=config.stash.get(_stopped, False)):
            terminalreporter.write_line(f"n00dles: {sentence}", **{"green" if is_clean else "red": True})
    _tell_of_live_tests(terminalreporter)
    if left := config.stash.get(_sentences, {}).get(_DEFAULT_STORE):
        from .isolation import advice

        terminalreporter.write_line(f"n00dles: {advice(left)}", yellow=True)
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
    if tally["bodies"]:
        parts.append(f"bodies ran {tally['bodies']} times")
    if unknown := tally["unknown"]:
        parts.append(f"{unknown} clause{'s' if unknown > 1 else ''} UNKNOWN")
    doubtful = unknown or config.stash[_sentences][_UNPATCHED]
    colour = "red" if tally["re_calls"] or alive or missed else "yellow" if doubtful else "green"
    terminalreporter.write_line(f"n00dles: {', '.join(parts)}", **{colour: True})
    sentences = config.stash[_sentences]
    for sentence in dict.fromkeys([*sentences[_UNPATCHED], *sentences[_UNKNOWN]]):
        terminalreporter.write_line(f"n00dles: {sentence}", yellow=True)
    twice = list(dict.fromkeys(sentences[_TWICE]))
    more = f" (and so in {len(twice) - 1} more pipelines, see report.may_run_twice)" if len(twice) > 1 else ""
    for sentence in twice[:1]:
        terminalreporter.write_line(f"n00dles: {sentence}{more}")
