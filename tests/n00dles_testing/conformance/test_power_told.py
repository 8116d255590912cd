"""What is told of the findings of one model, and what is not told twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from n00dles_testing.conformance.power_judge import Recoveries
from n00dles_testing.conformance.power_told import told_report
from n00dles_testing.powerloss.exploring import PowerLossFinding, PowerLossReport
from n00dles_testing.powerloss.faults_found import Fault, FaultKind
from n00dles_testing.powerloss.models import MODELS
from n00dles_testing.powerloss.state import State
from n00dles_testing.powerloss.tree import Tree


def finding(kind: FaultKind, message: str, *details: str) -> PowerLossFinding:
    state = State(Tree(), (), (), (), 1)
    return PowerLossFinding(Fault(kind, message, details), state, "the data is lost", "at the end", 1, ())


def told(*findings: PowerLossFinding) -> list[dict[str, Any]]:
    report = PowerLossReport(MODELS["ext4"], 3, findings=findings)
    found: list[dict[str, Any]] = told_report(report, Recoveries(1, 1))["findings"]
    return found


@pytest.mark.parametrize("kind", [FaultKind.CORRUPT, FaultKind.WEDGED])
def test_what_a_second_power_loss_shows_as_the_first_one_does_is_told_once(kind: FaultKind) -> None:
    first = finding(kind, "it hangs")
    second = finding(FaultKind.RECOVERY, f"a second power loss is not survived: {kind}: it hangs")

    assert [each["kind"] for each in told(second, first)] == [kind]


@pytest.mark.parametrize(("second", "found"), [("data", ["CORRUPT"]), ("rename", ["CORRUPT", "RECOVERY"])])
def test_a_loss_of_the_same_kind_in_both_is_one_cause(second: str, found: list[str]) -> None:
    first = replace(finding(FaultKind.CORRUPT, "column 1"), cause=frozenset({"data in save"}))
    other = finding(FaultKind.RECOVERY, "a second power loss is not survived: CORRUPT: column 7")

    report = told(first, replace(other, cause=frozenset({f"{second} in the recovery"})))

    assert [each["kind"] for each in report] == found


@pytest.mark.parametrize(("second", "found"), [("data", ["LOST_ACK"]), ("removal", ["LOST_ACK", "LOST_IN_RECOVERY"])])
def test_a_save_that_both_take_by_a_loss_of_the_same_kind_is_told_once(second: str, found: list[str]) -> None:
    first = replace(finding(FaultKind.LOST_ACK, "run 'r1': a save is gone"), cause=frozenset({"data in save"}))
    other = finding(FaultKind.LOST_IN_RECOVERY, "a second power loss takes it: LOST_ACK: run 'r2': a save is gone")

    report = told(first, replace(other, cause=frozenset({f"{second} in the recovery"})))

    assert [each["kind"] for each in report] == found


def test_what_it_shows_of_the_other_clause_is_told() -> None:
    first = finding(FaultKind.LOST_ACK, "a save is gone")
    second = finding(FaultKind.RECOVERY, "a second power loss is not survived: CORRUPT: a save is gone")

    assert [each["kind"] for each in told(first, second)] == ["LOST_ACK", "RECOVERY"]


def test_another_cause_in_a_second_power_loss_is_told_by_what_was_lost_in_that_one() -> None:
    one, other = (finding(FaultKind.RECOVERY, "no", f"lost in the second: the data of `{name}`") for name in "ab")

    [each] = told(replace(one, further=(other,)))

    assert [further["words"] for further in each["further"]] == [
        "the data is lost; lost in the second: the data of `b`",
    ]
