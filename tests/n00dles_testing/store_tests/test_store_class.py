"""`StateStoreConformance`: a class of three lines, in a pytest of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.n00dles_testing.store_tests.inner_pytest import FEW, NAMES, ROOT, inner, run, tried

pytest_plugins = ["pytester"]
__all__ = ["inner"]

HEAD = """
import os
import pytest
from contextlib import asynccontextmanager, contextmanager
from n00dles_testing import StateStoreConformance
from stores import Caching, JSONFiles
"""
THREE_LINES = """
class TestMyStore(StateStoreConformance):
    def open_store(self, location: str):
        return Caching(location)
"""
ANY_WAY = """
class TestMethod(StateStoreConformance):
    def open_store(self, location): return JSONFiles(location)

class TestCoroutine(StateStoreConformance):
    async def open_store(self, location): return JSONFiles(location)

class TestStatic(StateStoreConformance):
    @staticmethod
    def open_store(location): return JSONFiles(location)

class TestOfClass(StateStoreConformance):
    @classmethod
    def open_store(cls, location): return JSONFiles(location)

class TestManager(StateStoreConformance):
    @contextmanager
    def open_store(self, location): yield JSONFiles(location)

class TestAsyncManager(StateStoreConformance):
    @asynccontextmanager
    async def open_store(self, location): yield JSONFiles(location)

class TestKind(StateStoreConformance):
    open_store = JSONFiles

class TestTarget(StateStoreConformance):
    target = "stores.py:JSONFiles"
"""
MEAN_NOTHING = """
class TestNothing(StateStoreConformance): pass

class TestGap(StateStoreConformance):
    target = "memory://"
    known_gaps = {"S99": "x"}

class TestNoReason(StateStoreConformance):
    target = "memory://"
    known_gaps = {"S01": ""}

class TestFixture(StateStoreConformance):
    def open_store(self, location, tmp_path): ...

class TestGaps(StateStoreConformance):
    target = "memory://"
    known_gaps = ["S01"]

class TestOurs(StateStoreConformance):
    open_store = JSONFiles
    claims = {"durable": True}

class TestNumber(StateStoreConformance):
    target = 5

class TestOther(StateStoreConformance):
    target = "memory://"
    claims = {"level": 1}

class TestBoth(StateStoreConformance):
    target = "memory://"
    def open_store(self, location): ...

class TestMade(StateStoreConformance):
    def __init__(self): ...
    def open_store(self, location): ...

class TestTwice(StateStoreConformance):
    target = "memory://"

class TestTwice(StateStoreConformance):
    target = "memory://"

@pytest.mark.parametrize("a", [1])
class TestParametrized(StateStoreConformance):
    target = "memory://"

def made():
    class TestInFunction(StateStoreConformance):
        open_store = JSONFiles
    return TestInFunction

TestInFunction = made()
"""


def write(inner: pytest.Pytester, text: str, name: str = "test_mystore") -> None:
    inner.makepyfile(**{name: HEAD + text})


def test_a_class_of_three_lines_has_a_test_for_each_clause(inner: pytest.Pytester) -> None:
    write(inner, THREE_LINES)

    result = run(inner, "--collect-only", "-q")

    assert [line for line in result.outlines if "::" in line] == [
        f"test_mystore.py::TestMyStore::test_{name}" for name in NAMES
    ]


def test_a_broken_store_fails_with_its_story_its_files_and_a_line_that_replays_it(
    inner: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")  # pytest then cuts no line of its summary; the story must stand there once
    write(inner, THREE_LINES)

    result = run(inner, "-k", FEW)
    (line,) = [line for line in result.outlines if line.startswith("  replay ")]
    again = inner.run(sys.executable, "-m", "n00dles_testing", *line.split("n00dles-testing")[1].split())

    assert tried(result) == {"failed": 1, "passed": 1}
    result.stdout.fnmatch_lines(
        [
            "_* TestMyStore.test_S05 _*",
            "S05  inputs[[]'topic'[]] is 'spoiled', not 'cats'",
            "  files    kept in *TestMyStore0/worker-1: S05-1, S05-2*",
            "  replay   n00dles-testing check test_mystore.py:TestMyStore.open_store --clause S05 --seed 0",
            "n00dles: test_mystore.py:TestMyStore.open_store: 1 clause passed; S05 FAIL; no level*",
        ]
    )
    result.stdout.no_fnmatch_line("*raceback*")
    assert again.ret == 1
    again.stdout.fnmatch_lines(["*S05*FAIL*", "*'topic'* is 'spoiled', not 'cats'*"])


def test_a_store_is_opened_in_any_way(inner: pytest.Pytester) -> None:
    write(inner, ANY_WAY)

    result = run(inner, "-k", "S01")

    assert tried(result) == {"passed": 8}


def test_any_subclass_is_found_and_bases_are_not_tests(inner: pytest.Pytester) -> None:
    write(
        inner,
        "class OfMine(StateStoreConformance):\n    __test__ = False\n    folder = 'a'\n"
        "    def open_store(self, location):\n        assert self.folder != 'a'\n        return JSONFiles(location)\n"
        "class MemoryKeepsIt(StateStoreConformance):\n    target = 'memory://'\n",
        "test_first",
    )
    inner.makepyfile(
        test_second="from test_first import OfMine\n"
        "class TestInB(OfMine):\n    folder = 'b'\n"
        "class TestInC(OfMine):\n    folder = 'c'\n"
        "    def test_S01(self):\n        print('it is for the author to say')\n"
    )

    result = run(inner, "-k", "S01", "-v", "-rP")

    assert tried(result) == {"passed": 3}
    result.stdout.fnmatch_lines(
        [
            "test_first.py::MemoryKeepsIt::test_S01 PASSED*",
            "test_second.py::TestInB::test_S01 PASSED*",
            "test_second.py::TestInC::test_S01 PASSED*",
            "it is for the author to say",
        ]
    )


def test_classes_that_code_has_made_are_tests_too(inner: pytest.Pytester) -> None:
    write(
        inner,
        "for name in ('TestA', 'TestB'):\n"
        "    globals()[name] = type(name, (StateStoreConformance,), {'open_store': JSONFiles})\n",
    )

    result = run(inner, "-k", "S01", "-v")

    assert tried(result) == {"passed": 2}


def test_classes_are_checked_by_the_workers_of_xdist(inner: pytest.Pytester) -> None:
    write(
        inner,
        "class TestFiles(StateStoreConformance):\n    open_store = JSONFiles\n"
        "class TestBroken(StateStoreConformance):\n    open_store = Caching\n",
    )

    result = run(inner, "-n", "2", "-k", FEW)

    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["n00dles: test_mystore.py:TestBroken.open_store: 1 clause passed; S05 FAIL; *"])


def test_known_gaps_are_expected_failures_and_an_unexpected_pass_fails(inner: pytest.Pytester) -> None:
    gaps = "    known_gaps = {'S05': 'hands out its cache', 'S01': 'was mended'}\n"
    write(inner, f"class TestMyStore(StateStoreConformance):\n    open_store = Caching\n{gaps}")

    result = run(inner, "-k", FEW)

    assert tried(result) == {"xfailed": 1, "failed": 1}
    result.stdout.fnmatch_lines(
        [
            "S01 is declared as a known gap (was mended), and passed: remove it from known_gaps of TestMyStore",
            "n00dles: *: 1 clause passed; S05 FAIL (known gap); *",
        ]
    )


def test_what_a_class_claims_is_probed_and_its_locations_have_to_be_apart(inner: pytest.Pytester) -> None:
    write(
        inner,
        "class TestKept(StateStoreConformance):\n    open_store = JSONFiles\n"
        "    claims = {'capabilities': ['durable']}\n"
        "class TestLoses(StateStoreConformance):\n    open_store = JSONFiles\n"
        "    claims = {'capabilities': ['leases']}\n"
        "class TestOnePlace(StateStoreConformance):\n"
        "    def open_store(self, location):\n        return JSONFiles(os.path.dirname(__file__))\n",
    )

    result = run(inner, "-k", "test_claims")

    assert tried(result) == {"passed": 1, "failed": 2}
    result.stdout.fnmatch_lines(
        [
            "  leases is claimed, and denied: the store has no method acquire",
            "  two different locations gave the same data*",
        ]
    )


def test_what_shows_nothing_fails_and_is_not_excused_by_a_known_gap(inner: pytest.Pytester) -> None:
    write(
        inner,
        "from n00dles_testing.conformance.runner import Runner\n"
        "from n00dles_testing.verdicts import ClauseResult, Verdict\n"
        "@pytest.fixture(autouse=True)\n"
        "def nothing_is_told(monkeypatch):\n"
        "    kinds = {'C01': Verdict.UNKNOWN, 'C02': Verdict.VACUOUS, 'S01': Verdict.NOT_RUN}\n"
        "    result = lambda self, clause: ClauseResult(clause.id, 'x', kinds[clause.id], 'no kill happened')\n"
        "    monkeypatch.setattr(Runner, 'check', result)\n"
        "class TestMyStore(StateStoreConformance):\n    target = 'memory://'\n    known_gaps = {'C02': 'it is slow'}\n",
    )

    result = run(inner, "-k", "C02 or C01 or S01", "-rs")

    assert tried(result) == {"failed": 2, "skipped": 1}
    result.stdout.fnmatch_lines(
        [
            "C01  UNKNOWN  no kill happened",
            "C02  VACUOUS  no kill happened",
            "n00dles: memory://: 0 clauses passed; S01 NOT RUN; C01 UNKNOWN; C02 VACUOUS; no level, *",
            "SKIPPED [[]1[]] test_mystore.py:*: NOT RUN: no kill happened",
        ]
    )


def test_what_fixtures_put_into_the_environment_reaches_the_store(inner: pytest.Pytester) -> None:
    write(
        inner,
        "@pytest.fixture(params=['a', 'b'])\n"
        "def place(request, monkeypatch):\n    monkeypatch.setenv('PLACE', request.param)\n"
        "@pytest.mark.usefixtures('place')\n"
        "class TestMyStore(StateStoreConformance):\n"
        "    def open_store(self, location):\n"
        "        with open('places', 'a') as file:\n            print(os.environ['PLACE'], file=file)\n"
        "        return JSONFiles(location)\n",
    )

    result = run(inner, "-k", "S01")

    assert tried(result) == {"passed": 2}
    assert set((inner.path / "places").read_text().split()) == {"a", "b"}


def test_a_store_that_hangs_when_it_is_opened_is_waited_for_once(inner: pytest.Pytester) -> None:
    write(inner, "class TestMyStore(StateStoreConformance):\n    target = 'stores.py:hangs'\n")

    result = run(inner, "--n00dles-limit=2")

    assert tried(result) == {"failed": len(NAMES)}
    result.stdout.fnmatch_lines(["stores.py:hangs cannot be checked: * did not return within 2 s*"])
    assert (inner.path / "opened").read_text() == "once "


def test_a_class_that_means_nothing_is_an_error_of_collection(inner: pytest.Pytester) -> None:
    write(inner, MEAN_NOTHING)

    result = run(inner)

    line = HEAD.count("\n") + MEAN_NOTHING[: MEAN_NOTHING.index("class TestTwice")].count("\n")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert tried(result) == {"errors": 13}
    result.stdout.fnmatch_lines(
        [
            "TestNothing: it does not say how to open the store.*",
            "TestGap: known_gaps: no check for S99*",
            "TestNoReason: *the known gap S01 has no reason*",
            "TestFixture: *asks for location, tmp_path, * called in other processes, where there are no fixtures*",
            "TestGaps: known_gaps is [[]'S01'[]]; write *",
            "TestOurs: claims is {'durable': True}, and names neither a level nor capabilities: *",
            "TestNumber: its target is 5; write a text*",
            "TestOther: what is said of a target, it says itself*",
            "TestBoth: it has both, open_store and a target*",
            "TestMade: it has an __init__; the class is made without arguments*",
            f"TestTwice: there is another class of this name in the file, in line {line}*",
            "TestParametrized: *Write a class for each variant*",
            "TestInFunction: it is defined in a function, where no other process finds it*",
        ]
    )
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


def test_the_titles_are_shown_and_the_documentation_is_there(inner: pytest.Pytester) -> None:
    write(inner, THREE_LINES)

    result = run(inner, "--collect-only", "-v", "-k", "S05")

    result.stdout.fnmatch_lines(["*<Function test_S05: what the caller mutates is not what is stored>", "*Seen in:*"])


def test_importing_the_class_imports_nothing_else() -> None:
    script = (
        "import sys; before = set(sys.modules); from n00dles_testing import StateStoreConformance; "
        "print(sorted(name for name in set(sys.modules) - before if 'n00dles' in name))"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)

    own = ["n00dles_testing", "n00dles_testing.store_tests", "n00dles_testing.store_tests.suite"]
    assert done.stdout.strip() == str(own)
