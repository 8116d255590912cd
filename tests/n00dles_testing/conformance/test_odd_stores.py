"""What is odd in a store must not be what breaks the check."""

from __future__ import annotations

from pathlib import Path

from n00dles_testing.conformance import StoreReport, check_store
from n00dles_testing.conformance.records import difference, show
from n00dles_testing.verdicts import Verdict

STORES = Path(__file__).with_name("odd_stores.py")


def verdicts(report: StoreReport) -> dict[str, Verdict]:
    return {result.clause: result.verdict for result in report.results}


def test_an_error_whose_message_cannot_be_read_is_told_by_its_type() -> None:
    found = check_store(f"{STORES}:RaisesWhatCannotBeRead", clauses=["S01", "S02", "S03"])

    assert set(verdicts(found).values()) == {Verdict.FAIL}
    assert found.results[0].reason.startswith(
        "save raised UnreadableError: (its message cannot be read: __str__ raises"
    )


def test_a_value_whose_repr_raises_is_shown_by_its_type() -> None:
    class Odd:
        def __repr__(self) -> str:
            raise RuntimeError

    shown = show(Odd())

    assert shown == "<Odd whose repr raises RuntimeError>"
    assert difference({"a": 1}, {"a": Odd()}) == f"['a'] is {shown} (Odd), not 1 (int)"
