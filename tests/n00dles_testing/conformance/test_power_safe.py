"""What a clause about power losses tells of the findings of several models."""

from __future__ import annotations

from typing import Any, cast

from n00dles_testing.conformance.expect import BrokenClause
from n00dles_testing.conformance.power_safe import OPENS, expect_none
from n00dles_testing.conformance.power_workload import saved_again
from n00dles_testing.conformance.scenario import Scenario
from tests.n00dles_testing.report.reports import power_loss


class Heard:
    """Takes the place of a scenario."""

    location: str | None = None

    def judged(self) -> None: ...

    def tell(self, line: str) -> None: ...


def told(*reports: dict[str, Any]) -> list[tuple[str, str] | None]:
    """Return, for each model, the kind of what is told and in how many states it was found."""
    came: list[tuple[str, str] | None] = []
    for report in reports:
        try:
            expect_none(cast(Scenario, Heard()), saved_again("r"), report, OPENS, among=reports)
        except BrokenClause as broken:
            came.append((broken.message.partition(" ")[0], dict(broken.details)["found"]))
        else:
            came.append(None)
    return came


def report(model: str, *findings: dict[str, Any]) -> dict[str, Any]:
    return {"model": model, "tried": 40, "findings": list(findings)}


def finding(kind: str, cause: str) -> dict[str, Any]:
    return power_loss(kind=kind, cause=[cause])


def test_one_fault_is_told_once_for_all_models() -> None:
    lost = finding("CORRUPT", "data in save")

    assert told(report("kill"), report("ext4", lost), report("journaled", lost)) == [
        None,
        ("CORRUPT", "in 3 of the 40 disk states tried under ext4, 3 of the 40 disk states tried under journaled"),
        None,
    ]


def test_another_cause_or_another_kind_under_another_model_is_told_as_well() -> None:
    lost = finding("CORRUPT", "data in save")

    assert told(
        report("kill", lost),
        report("ext4", finding("CORRUPT", "rename in save")),
        report("journaled", lost, finding("WEDGED", "data in save"), finding("LOST_ACK", "data in save")),
    ) == [
        ("CORRUPT", "in 3 of the 40 disk states tried under kill, 3 of the 40 disk states tried under journaled"),
        ("CORRUPT", "in 3 of the 40 disk states tried under ext4"),
        ("WEDGED", "in 3 of the 40 disk states tried under journaled"),
    ]
