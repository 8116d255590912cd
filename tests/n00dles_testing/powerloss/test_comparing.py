from __future__ import annotations

import pytest

from n00dles_testing.powerloss.comparing import Expected, compare
from n00dles_testing.powerloss.faults_found import FaultKind

THREE_SAVES = Expected(before="", after={"1": "one", "2": "two", "3": "three"})


@pytest.mark.parametrize(
    ("acknowledged", "invoked", "loaded"),
    [
        ((), (), ""),
        ((), ("1",), ""),
        ((), ("1",), "one"),
        (("1",), ("1",), "one"),
        (("1",), ("1", "2"), "one"),
        (("1",), ("1", "2"), "two"),
        (("1",), ("1", "2", "3"), "three"),
        (("1", "2", "3"), ("1", "2", "3"), "three"),
    ],
)
def test_the_last_acknowledged_and_what_was_invoked_after_it_may_be_there(
    acknowledged: tuple[str, ...], invoked: tuple[str, ...], loaded: str
) -> None:
    assert compare(loaded, THREE_SAVES, acknowledged, invoked) is None


@pytest.mark.parametrize(
    ("acknowledged", "invoked", "loaded", "kind"),
    [
        (("1",), ("1",), "", FaultKind.LOST_ACK),
        (("1", "2"), ("1", "2", "3"), "one", FaultKind.LOST_ACK),
        (("1", "2"), ("1", "2", "3"), "", FaultKind.LOST_ACK),
        ((), (), "one", FaultKind.PHANTOM),
        (("1",), ("1",), "two", FaultKind.PHANTOM),
        (("1",), ("1", "2"), "four", FaultKind.PHANTOM),
        (("1",), ("1", "2"), "one+two", FaultKind.MIXED),
    ],
)
def test_anything_else_is_a_fault_of_its_kind(
    acknowledged: tuple[str, ...], invoked: tuple[str, ...], loaded: str, kind: FaultKind
) -> None:
    fault = compare(loaded, THREE_SAVES, acknowledged, invoked, is_mixed=lambda value: "+" in value)

    assert fault is not None
    assert fault.kind is kind


def test_a_deleted_run_does_not_come_back() -> None:
    expected = Expected[dict[str, int] | None](before=None, after={"save": {"a": 1}, "delete": None})

    early = compare({"a": 1}, expected, ["save"], ["save", "delete"])
    late = compare({"a": 1}, expected, ["save", "delete"], ["save", "delete"])

    assert early is None
    assert late is not None
    assert late.kind is FaultKind.LOST_ACK
    assert late.message.startswith("its deletion was acknowledged, and it is back: {'a': 1} was loaded")


def test_calls_of_other_records_do_not_count() -> None:
    assert compare("one", THREE_SAVES, ["1", "other"], ["1", "other", "another"]) is None


def test_a_fault_says_what_came_and_what_may_come() -> None:
    fault = compare("one", THREE_SAVES, ["1", "2"], ["1", "2", "3"])

    assert fault is not None
    assert fault.message == "an acknowledged save is gone: 'one' was loaded; only 'two' or 'three' are allowed"
    assert fault.details == ()
