"""The item that holds a store against what its author says of it: a claim that a probe denies fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ..conformance.capabilities import CAPABILITIES, Capability, Outcome
from ..conformance.contract import LEVELS, level_title
from ..conformance.registry import implemented
from ..conformance.runner import Runner
from ..conformance.served import password_hidden
from ..report.escape import one_line
from .outcome import PROPERTY, claimed_level, open_for, told_interrupts
from .runners import StoreRunners

__all__ = ["TITLE", "check_claims"]

TITLE = "what is claimed of the store is found by a probe, and its locations are apart"


def check_claims(item: pytest.Item, target: str, make_folder: Callable[[], Path] | None = None) -> None:
    """Probe every capability. Skips if nothing could fail: nothing is claimed, and there are no locations."""
    with told_interrupts(f"the probes of {one_line(password_hidden(target))}"):
        runner = open_for(StoreRunners.of(item.config), target, make_folder)
        capabilities = [runner.probe(name) for name in CAPABILITIES]
    problems = _denied(capabilities)
    if runner.shares_data:
        problems.append(one_line(runner.shares_data))
    found = [each.name for each in capabilities if each.outcome is Outcome.FOUND]
    unclaimed = [name for name in found if name not in runner.claims.capabilities]
    note = f"found, and not claimed: {', '.join(unclaimed)}" if unclaimed else "nothing is found that is not claimed"
    note = "; ".join([note, *_not_to_be_shown(runner)])
    item.user_properties += [
        (f"{PROPERTY}target", one_line(password_hidden(target))),
        (f"{PROPERTY}found", ", ".join(found)),
        (f"{PROPERTY}claimed", ", ".join(runner.claims.capabilities)),
        (f"{PROPERTY}denied", "; ".join(problems)),
        *claimed_level(runner),
    ]
    if problems:
        lines = "\n".join(f"  {problem}" for problem in problems)
        pytest.fail(f"what is said of the store is not so\n{lines}\n  besides  {note}", pytrace=False)
    claims_nothing = not runner.claims.capabilities and runner.claims.level is None
    if claims_nothing and not runner.takes_location:
        raise pytest.skip.Exception(f"NOT APPLICABLE: nothing is claimed; {note}", _use_item_location=True)
    item.add_report_section("call", "n00dles", note)


def _denied(capabilities: list[Capability]) -> list[str]:
    return [f"{each.name} is claimed, and denied: {one_line(each.proof)}" for each in capabilities if not each.ok]


def _not_to_be_shown(runner: Runner) -> list[str]:
    """Say which clauses of a claimed level nobody can check yet; how the others end, their own items tell."""
    claimed = runner.claims.level
    if claimed is None:
        return []
    checked = {clause.id for clause in implemented()}
    missing = [id_ for level in range(1, claimed + 1) for id_ in LEVELS[level][1] if id_ not in checked]
    if not missing:
        return []
    return [
        f"{level_title(claimed)} is claimed; whether it is reached cannot be told: {', '.join(missing)} not checked"
    ]
