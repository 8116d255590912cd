"""The fixture `no_network`, in a pytest of its own."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

# What an inner pytest imports first is gone after it, and the next one would have half of it anew: so it is here.
from n00dles import arun  # noqa: F401
from n00dles_testing import isolation, llm_fixtures, network_reports, no_sleep  # noqa: F401
from n00dles_testing.crash import child

pytest_plugins = ["pytester"]

FAR = "203.0.113.1"  # TEST-NET-3: nobody has it

HEAD = """
import contextlib, os, socket, sys, threading
import pytest

def ask(host="model.invalid"):
    socket.getaddrinfo(host, 443)
"""


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("CI", "true")  # so that pytest cuts no line of its summary
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    return pytester


def run(inner: pytest.Pytester, body: str, *arguments: str) -> pytest.RunResult:
    inner.makepyfile(test_it=HEAD + body)
    return inner.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:randomly", *arguments)


def test_a_test_that_leaves_the_machine_fails_once_however_it_does_so(inner: pytest.Pytester) -> None:
    result = run(
        inner,
        """
def test_plainly(no_network):
    ask()

def test_swallowed(no_network):
    with contextlib.suppress(BaseException):
        ask()

def test_skipped(no_network):
    try:
        ask()
    except BaseException:
        pytest.skip("no network here")

def test_in_a_forked_child(no_network):
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            ask("child.invalid")
        os._exit(0)
    os.waitpid(child, 0)

@pytest.mark.filterwarnings("ignore")
def test_in_a_thread(no_network):
    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()

def test_in_a_group(no_network):
    try:
        ask()
    except BaseException as error:
        raise BaseExceptionGroup("tasks", [error])

@pytest.mark.usefixtures("no_network")
class TestOfAClass:
    def test_method(self):
        ask()
""",
    )

    result.assert_outcomes(failed=7)
    result.stdout.fnmatch_lines(["no_network: child.invalid:443 from *.py:* in ask, in the child process * (look up)"])
    for name in ("plainly", "swallowed", "skipped", "in_a_forked_child", "in_a_thread", "in_a_group", "method"):
        result.stdout.fnmatch_lines([f"FAILED *test_{name} - Failed: no_network: *.invalid:443*"])


def test_another_failure_says_what_was_swallowed_before(inner: pytest.Pytester) -> None:
    result = run(
        inner,
        """
def test_answers(no_network):
    answer = None
    with contextlib.suppress(BaseException):
        answer = ask()
    assert answer == "yes"
""",
    )

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*no_network: model.invalid:443 from *.py:* in ask (look up)"])
    result.stdout.fnmatch_lines(["FAILED *::test_answers - AssertionError*"])


def test_what_happens_after_the_body_is_an_error_of_the_teardown(inner: pytest.Pytester) -> None:
    result = run(
        inner,
        """
@pytest.fixture
def untidy(no_network):
    yield
    with contextlib.suppress(BaseException):
        ask()

def test_passes(untidy):
    pass

def test_next(no_network):
    pass
""",
    )

    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["ERROR *::test_passes - *no_network: model.invalid:443*"])


def test_this_machine_is_no_network_and_a_marker_switches_the_guard_off(inner: pytest.Pytester) -> None:
    result = run(
        inner,
        f"""
def event(host):
    # What a connection would raise, without one.
    with socket.socket() as sock:
        sys.audit("socket.connect", sock, (host, 443))

def test_here(no_network):
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
    assert no_network.attempts() == []

@pytest.mark.n00dles_network
def test_switched_off(no_network):
    event("{FAR}")
    assert no_network is None

@pytest.mark.n00dles_network("{FAR}")
def test_one_host(no_network):
    event("{FAR}")
    with pytest.raises(BaseException, match="203.0.113.2:443"):
        event("203.0.113.2")
    no_network.take()

def test_without_the_fixture():
    event("{FAR}")
""",
        "--strict-markers",
    )

    result.assert_outcomes(passed=4)


def test_a_line_of_settings_guards_all_tests(inner: pytest.Pytester) -> None:
    inner.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\nusefixtures = no_network\n")

    result = run(inner, "def test_plainly():\n    ask()\n")

    result.assert_outcomes(failed=1)


def test_a_unittest_is_guarded(inner: pytest.Pytester) -> None:
    result = run(
        inner,
        """
import unittest

@pytest.mark.usefixtures("no_network")
class Tests(unittest.TestCase):
    def test_swallowed(self):
        with contextlib.suppress(BaseException):
            ask()
""",
    )

    result.assert_outcomes(failed=1)


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_tests_on_an_event_loop_are_guarded(inner: pytest.Pytester, mode: str) -> None:
    marker = "@pytest.mark.asyncio\n" if mode == "strict" else ""
    result = run(
        inner,
        f"""
import asyncio, httpx
from n00dles import agent, arun, pipeline

@agent(retry=2)
async def researcher(topic: str) -> str:
    async with httpx.AsyncClient() as client:
        return (await client.get("https://model.invalid/v1")).text

@agent
async def writer(topic: str) -> str:
    asked = {{"model": "m", "messages": [{{"role": "user", "content": topic}}]}}
    async with httpx.AsyncClient(headers={{"Authorization": "Bearer sk-fake"}}) as client:
        response = await client.post("https://model.invalid/v1/chat/completions", json=asked)
        return response.json()["choices"][0]["message"]["content"]

@agent
async def local(topic: str) -> str:
    return topic

{marker}async def test_mocked(mock_llm, no_sleep):
    mock_llm.reply("writer", "Three facts.")
    assert (await arun(pipeline(writer, name="p"), topic="x")).output == "Three facts."

{marker}async def test_unscripted(mock_llm):
    with contextlib.suppress(Exception):
        await arun(pipeline(writer, name="p"), topic="x")

{marker}async def test_remote(no_network):
    await arun(pipeline(researcher, name="p"), topic="x")

{marker}async def test_local(no_network, n00dles_store):
    result = await arun(pipeline(local, name="p"), topic="x")
    assert (await n00dles_store.load(result.run_id)).completed == {{"local": "x"}}
""",
        "-o",
        f"asyncio_mode={mode}",
    )

    result.assert_outcomes(failed=2, passed=2)
    result.stdout.fnmatch_lines(["*mock_llm has no reply for node 'writer' (m), which was asked: 'x'*"])
    result.stdout.fnmatch_lines(["no_network: model.invalid:443 from *.py:* in researcher, in node 'researcher' (*"])


def test_tests_of_anyio_are_guarded(inner: pytest.Pytester) -> None:
    result = run(
        inner,
        """
import anyio

@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"

@pytest.fixture(scope="module")
async def shared(anyio_backend):
    yield "the event loop of the module"

@pytest.mark.anyio
async def test_remote(no_network, shared):
    await anyio.connect_tcp("model.invalid", 443)

@pytest.mark.anyio
async def test_of_the_same_loop(no_network, shared):
    await anyio.sleep(0)

@pytest.mark.anyio
async def test_swallowed_in_a_group(no_network):
    async def quiet():
        with contextlib.suppress(BaseException):
            await anyio.connect_tcp("203.0.113.1", 443)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(quiet)
""",
    )

    result.assert_outcomes(failed=2, passed=1)
    result.stdout.fnmatch_lines(["no_network: model.invalid:443 from *.py:* in test_remote (look up)"])
    result.stdout.fnmatch_lines(["no_network: 203.0.113.1:443 from *.py:* in *.quiet or *.py:* in * (connect)"])


@pytest.mark.parametrize("mode", ["fork", "in-process"])
def test_the_processes_that_are_killed_are_guarded(inner: pytest.Pytester, mode: str) -> None:
    inner.makepyfile(
        pipelines="""
import contextlib, socket
from n00dles import agent, pipeline

@agent
def careless(text: str) -> str:
    with contextlib.suppress(BaseException):
        socket.getaddrinfo("model.invalid", 443)
    return text

p = pipeline(careless, name="p")
"""
    )
    result = run(
        inner,
        f"""
sys.path.insert(0, os.path.dirname(__file__))

def test_survives(crash_safety):
    import pipelines
    crash_safety.check(pipelines.p, mode={mode!r}, at=["before:careless"], text="x")
""",
    )

    result.assert_outcomes(failed=1)
    where = "" if mode == "in-process" else ", in the child process *"
    result.stdout.fnmatch_lines(
        [f"no_network: model.invalid:443 from *pipelines.py:7 in careless, in node 'careless'{where} (look up)"]
    )


def test_a_fresh_interpreter_of_a_life_is_guarded_before_it_imports_the_pipeline(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    request = tmp_path / "request"
    request.write_text('{"subject": {}}')
    seen = []

    def guard() -> None:
        seen.append("guarded")

    def load(subject: object) -> NoReturn:
        raise LookupError("the pipeline is imported")

    monkeypatch.setattr(child, "keep_the_network_guard", guard)
    monkeypatch.setattr(child, "Subject", dict)
    monkeypatch.setattr(child, "load_subject", load)

    with pytest.raises(LookupError):
        child.main(str(request))

    assert seen == ["guarded"]
