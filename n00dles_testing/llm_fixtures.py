"""What stands behind `mock_llm` and `llm_server` in pytest: a test fails as soon as its body has ended, by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType

import pytest

from .live_tests import is_live, overheard
from .llm.client import LLMServer
from .llm.live import LiveLLM
from .llm.mock import MockLLM
from .llm.scripted_server import ScriptedServer
from .llm.scripting import Scripted
from .network_reports import MARKER as NETWORK_MARKER

__all__ = ["mocked", "served", "watched"]

_REPORTS = "n00dles-script-reports"
_OTHER_STACKS = ("aiohttp", "urllib3", "requests", "pycurl", "tornado")
_scripts: pytest.StashKey[list[Scripted]] = pytest.StashKey()


@contextmanager
def mocked(request: pytest.FixtureRequest) -> Iterator[MockLLM]:
    """Give the test of `request` its `mock_llm`."""
    if is_live(request):
        with overheard(request) as live:
            yield live
        return
    mark = request.node.get_closest_marker(NETWORK_MARKER)
    mock = MockLLM(allowed=mark.args if mark else ())
    with mock.started(), watched(request, mock):
        yield mock


@contextmanager
def served(request: pytest.FixtureRequest, server: Callable[[], LLMServer]) -> Iterator[ScriptedServer | LiveLLM]:
    """Give the test of `request` its `llm_server`: a channel of its own on a server that runs."""
    if is_live(request):
        with overheard(request) as live:
            yield live
        return
    scripted = ScriptedServer(server(), re.sub(r"\W+", "-", request.node.nodeid))
    with scripted.started(), watched(request, scripted):
        yield scripted


@contextmanager
def watched(request: pytest.FixtureRequest, scripted: Scripted) -> Iterator[None]:
    """Fail the test of `request` if a call has no reply, however the program took that, or if a reply is not used.

    Fails the teardown for calls without a reply that come after the test.
    """
    plugins = request.config.pluginmanager
    if not plugins.has_plugin(_REPORTS):  # so that a run without a script has one hook less to call
        plugins.register(_Reports(), _REPORTS)
    scripts = request.node.stash.setdefault(_scripts, [])
    scripts.append(scripted)
    for server in (each for each in scripts if isinstance(each, ScriptedServer)):
        for mock in (each for each in scripts if isinstance(each, MockLLM)):
            mock.leave_to(server.url)
    yield
    if late := scripted.unscripted():
        pytest.fail("after the test had ended: " + "\n".join(late), pytrace=False)


class _Reports:
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Hold the test against its scripts."""
        __tracebackhide__ = True
        scripts = item.stash.get(_scripts, [])
        try:
            result = yield
        except (pytest.skip.Exception, pytest.xfail.Exception):
            raise
        except BaseException as error:
            _explain(error, scripts, item)
            raise
        if problems := [problem for each in scripts for problem in each.problems()]:
            pytest.fail("\n".join(problems), pytrace=False)
        return result


def _explain(error: BaseException, scripts: Sequence[Scripted], item: pytest.Item) -> None:
    """Add to a failure which calls had no reply: the program may have made something else of that."""
    for each in scripts:
        for problem in each.unscripted():
            if problem not in str(error):
                error.add_note(problem)
    stack = _other_stack(error.__traceback__) if any(isinstance(each, MockLLM) for each in scripts) else None
    if stack is not None and not isinstance(error, Exception):  # the guard of the network, or another that is final
        hint = (
            f"mock_llm answers clients of httpx and httpx2. This call came over {stack} (litellm's async calls come "
            "over aiohttp): use llm_server in its place, which answers every client."
        )
        item.add_report_section("call", "mock_llm", hint)


def _other_stack(traceback: TracebackType | None) -> str | None:
    found = None
    while traceback is not None:
        package = traceback.tb_frame.f_globals.get("__name__", "").partition(".")[0]
        found = package if package in _OTHER_STACKS else found
        traceback = traceback.tb_next
    return found
