"""A server for the stores of pytest: by the option, and by the attribute of a class."""

from __future__ import annotations

import pytest

from n00dles_testing.servers import why_not_valkey
from tests.n00dles_testing.store_tests.inner_pytest import inner, run

pytest_plugins = ["pytester"]
__all__ = ["inner"]
pytestmark = pytest.mark.skipif(bool(why := why_not_valkey()), reason=f"NOT RUN: {why}")

CLASS = """
from n00dles_testing import StateStoreConformance
from n00dles_testing.conformance.mutants.correct_valkey import ValkeyRuns

class TestOnValkey(StateStoreConformance):
    server = "valkey"

    def open_store(self, location):
        return ValkeyRuns(location)
"""


def test_a_class_gets_urls_on_a_server_of_its_own(inner: pytest.Pytester) -> None:
    inner.makepyfile(test_it=CLASS)

    done = run(inner, "test_it.py", "-k", "S01 or P01", "-rs")

    done.assert_outcomes(passed=1, skipped=1)
    done.stdout.fnmatch_lines(["*NOT APPLICABLE: the runs lie with a server (address*"])


def test_the_option_starts_one_for_the_stores_that_are_named(inner: pytest.Pytester) -> None:
    done = run(inner, "--n00dles-store=redis://?timeout=5", "--n00dles-server=valkey", "-k", "S01")

    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["n00dles: redis://?timeout=5: 1 clause passed; no level*"])
