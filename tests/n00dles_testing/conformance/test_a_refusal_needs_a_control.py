"""Many clauses take a refusal for fine. Where what is plain is refused as well, nothing was shown, and none passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from n00dles_testing.conformance import check_store
from n00dles_testing.verdicts import Verdict

STORES = Path(__file__).parent / "refusing_stores.py"


@pytest.mark.parametrize("store", ["OneConnectionOfOneThread", "RefusesEverySave"])
def test_a_store_that_refuses_everything_passes_no_clause(store: str) -> None:
    report = check_store(f"{STORES}:{store}")

    passed = [result.clause for result in report.results if result.verdict in {Verdict.PASS, Verdict.NOT_APPLICABLE}]
    assert passed == []


def test_that_a_plain_id_is_refused_is_no_refusal_of_a_hostile_one() -> None:
    [result] = check_store(f"{STORES}:OneConnectionOfOneThread", clauses=["S06"]).results

    assert result.verdict is Verdict.FAIL
    assert "load_or_create raised ProgrammingError" in result.findings[0].message
