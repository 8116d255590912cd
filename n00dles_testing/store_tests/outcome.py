"""From a verdict to what pytest knows: PASS passes, what does not apply or was not run is skipped, all else fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from ..conformance.gaps import GapState, judge_gaps
from ..conformance.grade import counts_for
from ..conformance.out_of_band import COMPARED_IN
from ..conformance.registry import Clause
from ..conformance.report import ReaderReport
from ..conformance.runner import Runner
from ..conformance.served import password_hidden
from ..report.escape import escaped, one_line
from ..verdicts import ClauseResult, Verdict
from .runners import StoreRunners, UnusableTargetError

__all__ = [
    "DECLARED_GAP",
    "PROPERTY",
    "BrokenClause",
    "check_item",
    "claimed_level",
    "known_gap",
    "open_for",
    "told_interrupts",
]

PROPERTY = "n00dles_"
"""Starts the names of all properties."""

DECLARED_GAP = pytest.StashKey[tuple[str, str]]()
"""The reason of a known gap, and where it is declared."""

_SKIPPED = (Verdict.NOT_APPLICABLE, Verdict.NOT_RUN)


_Failed: type[BaseException] = pytest.fail.Exception


class BrokenClause(_Failed):  # type: ignore[misc, valid-type]
    """The store breaks a clause: the only failure that a known gap excuses. Its message is the story."""

    # Shown by pytest in front of the message, as its own outcomes are.
    __module__ = "builtins"
    is_a_story = True


def check_item(item: pytest.Item, target: str, clause: Clause, make_folder: Callable[[], Path] | None = None) -> None:
    """Check one clause for an item: leave the properties with it, and return or raise what becomes of it."""
    runners = StoreRunners.of(item.config)
    try:
        with told_interrupts(f"{clause.id} of {one_line(password_hidden(target))}"):
            runner = open_for(runners, target, make_folder)
            result = runners.check(target, clause)
    except UnusableTargetError as error:
        raise _cannot_be_checked(target, error) from None
    item.user_properties += [(PROPERTY + name, value) for name, value in _properties(target, clause, result)]
    item.user_properties += claimed_level(runner)
    reason, where = item.stash.get(DECLARED_GAP, ("", ""))
    gaps = judge_gaps({clause.id: reason} if reason else {}, [result], where)
    item.user_properties += [(f"{PROPERTY}gap", gap.reason) for gap in gaps if gap.state is GapState.KNOWN]
    if fault := _fault_of_reader(runner.read, clause, result):
        pytest.fail(f"{clause.id}  {one_line(fault)}", pytrace=False)
    for gap in gaps:
        if not gap.ok:
            pytest.fail(one_line(gap.text), pytrace=False)
    if result.verdict is Verdict.PASS:
        item.add_report_section("call", "n00dles", escaped(result.reason))
    elif result.verdict in _SKIPPED:
        if (runner.claims.level or 0) >= clause.level and not counts_for(clause.id, result.verdict):
            level = f"level {runner.claims.level} is claimed ({runner.claims.source})"
            pytest.fail(f"{clause.id}  {result.verdict.value}, and {level}: {one_line(result.reason)}", pytrace=False)
        raise pytest.skip.Exception(f"{result.verdict.value}: {one_line(result.reason)}", _use_item_location=True)
    else:
        _fail(clause, result, runners.kept(target, clause))


def open_for(runners: StoreRunners, target: str, make_folder: Callable[[], Path] | None) -> Runner:
    """Open a target for an item, which fails if that is not possible."""
    try:
        return runners.open(target, make_folder)
    except UnusableTargetError as error:
        raise _cannot_be_checked(target, error) from None


def claimed_level(runner: Runner) -> list[tuple[str, str]]:
    """Return properties that say which level is claimed, and where; whether it is reached is told at the end."""
    if runner.claims.level is None:
        return []
    return [
        (f"{PROPERTY}claimed_level", str(runner.claims.level)),
        (f"{PROPERTY}claimed_in", one_line(runner.claims.source)),
    ]


@contextmanager
def told_interrupts(what: str) -> Iterator[None]:
    """Have pytest say, after Ctrl-C, what was going on, and not at which line of the suite."""
    try:
        yield
    except KeyboardInterrupt:
        pytest.exit(f"interrupted, during {what}")


def known_gap(reason: str) -> pytest.MarkDecorator:
    """Return the mark of an item whose clause is known to be broken: that it fails is expected, anything else fails.

    What shows nothing (VACUOUS) is no such failure.
    """
    return pytest.mark.xfail(reason=f"known gap: {reason}", raises=BrokenClause, strict=True)


def _cannot_be_checked(target: str, error: UnusableTargetError) -> BaseException:
    return _Failed(f"{password_hidden(target)} cannot be checked: {error}", pytrace=False)  # type: ignore[call-arg]


def _fault_of_reader(read: ReaderReport | None, clause: Clause, result: ClauseResult) -> str:
    """Say what is wrong with an out-of-band reader: what was asked for with it was then not done."""
    if read is None or clause.id not in COMPARED_IN or result.verdict is not Verdict.PASS:
        return ""
    return read.fault or ("" if read.compared else f"nothing was compared with the out-of-band reader {read.name}")


def _fail(clause: Clause, result: ClauseResult, kept: list[Path]) -> NoReturn:
    contract = f"  contract {clause.id}: {clause.title} (docs/reference/contract.md#{clause.id.lower()})"
    if not result.findings:
        pytest.fail(f"{clause.id}  {result.verdict.value}  {one_line(result.reason)}\n{contract}", pytrace=False)
    first, *others = result.findings
    lines = [f"{first.clause}  {one_line(first.message)}", *(f"  {escaped(line)}" for line in first.story)]
    lines += [f"  also     {one_line(finding.story[0])}: {one_line(finding.message)}" for finding in others]
    if kept:
        lines.append(f"  files    kept in {kept[0].parent}: {', '.join(path.name for path in kept)}")
    lines.append(contract)
    if first.replay:
        lines.append(f"  replay   {one_line(first.replay)}")
    raise BrokenClause("\n".join(lines), pytrace=False)


def _properties(target: str, clause: Clause, result: ClauseResult) -> list[tuple[str, str]]:
    """Return what reports and the summary need; properties travel from a worker of xdist, and into a JUnit file."""
    replay = next((finding.replay for finding in result.findings if finding.replay), "")
    values = {
        "target": password_hidden(target),
        "clause": clause.id,
        "level": str(clause.level),
        "title": clause.title,
        "verdict": result.verdict.value,
        "scenarios": str(result.scenarios),
        "reason": result.reason,
        "replay": replay,
    }
    return [(name, one_line(value)) for name, value in values.items() if value]
