"""Each test has a store of its own, and one that leaves runs in the working folder is told so."""

from __future__ import annotations

import pytest

# What an inner pytest imports first is gone after it, and the next one would have half of it anew: so it is here.
from n00dles import arun, config, configure  # noqa: F401
from n00dles_testing import isolation, network_reports  # noqa: F401

pytest_plugins = ["pytester"]

SETTINGS = "[pytest]\nasyncio_default_fixture_loop_scope = function\n"

PIPELINE = """
import os
import pytest
from n00dles import agent, configure, pipeline, run
from n00dles.config import default_store

calls = []

@agent
def shout(text: str) -> str:
    calls.append(text)
    return text.upper()

p = pipeline(shout, name="p")
"""


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setattr("n00dles.config._Defaults.store", None)
    monkeypatch.setattr("n00dles.config._Defaults.is_configured", False)
    pytester.makeini(SETTINGS)
    return pytester


def run(inner: pytest.Pytester, body: str, *arguments: str) -> pytest.RunResult:
    inner.makepyfile(PIPELINE + body)
    return inner.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:randomly", *arguments)


def test_a_run_of_one_test_is_not_found_by_the_next(inner: pytest.Pytester) -> None:
    result = run(
        inner,
        """
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("fixture", ["n00dles_store", "no_network"])
def test_runs(number, fixture, request):
    request.getfixturevalue(fixture)
    calls.clear()
    assert run(p, run_id="monday", text="x").output == "X"
    assert calls == ["x"]
    assert default_store() is request.getfixturevalue("n00dles_store")
""",
    )

    result.assert_outcomes(passed=4)
    assert not (inner.path / "n00dles_state.db").exists()
    assert "default store" not in result.stdout.str()


def test_what_a_test_configures_is_undone(inner: pytest.Pytester) -> None:
    result = run(
        inner,
        """
from n00dles.config import lease_ttl

configure(state_store="memory://", lease_ttl=7)
of_the_module = default_store()

def test_configures(n00dles_store):
    assert default_store() is n00dles_store
    configure(state_store="memory://", lease_ttl=3)
    assert default_store() is not n00dles_store

def test_next():
    assert (default_store(), lease_ttl()) == (of_the_module, 7)
    configure(lease_ttl=30)
""",
    )

    result.assert_outcomes(passed=2)


def test_a_test_that_writes_to_the_working_folder_is_named(inner: pytest.Pytester) -> None:
    result = run(
        inner,
        """
def test_first():
    run(p, text="x")

def test_isolated(n00dles_store):
    run(p, text="x")

def test_without_a_run():
    pass

def test_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(p, text="x")
    assert os.path.exists("n00dles_state.db")

def test_second():
    run(p, text="x")
""",
    )

    result.assert_outcomes(passed=5)
    (line,) = [line for line in result.outlines if "default store" in line]
    file = inner.path / "n00dles_state.db"
    assert line.startswith(
        f"n00dles: test_a_test_that_writes_to_the_working_folder_is_named.py::test_first wrote to {file}; "
    )
    assert f"::test_second wrote to {file}: that is the default store" in line
    assert "isolated" not in line
    assert "elsewhere" not in line


def test_it_works_with_workers_and_in_any_order(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        PIPELINE
        + """
import socket

@pytest.mark.parametrize("number", range(6))
def test_own_store(number, no_network):
    calls.clear()
    assert run(p, run_id="monday", text="x").output == "X"
    assert calls == ["x"]

def test_leaves_the_machine(no_network):
    socket.getaddrinfo("model.invalid", 443)

def test_writes():
    run(p, text="x")
"""
    )

    result = inner.runpytest_subprocess("-p", "no:cacheprovider", "-n", "2", "-p", "randomly", "-p", "xdist", "-v")

    result.assert_outcomes(passed=7, failed=1)
    result.stdout.fnmatch_lines(["Using --randomly-seed=*"])
    result.stdout.fnmatch_lines(["no_network: model.invalid:443 from *.py:* in test_leaves_the_machine (look up)"])
    result.stdout.fnmatch_lines(
        [f"n00dles: *::test_writes wrote to {inner.path}/n00dles_state.db: that is the default*"]
    )
