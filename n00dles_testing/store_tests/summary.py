"""What is said at the end about each store: the level reached, if all of its clauses were tried, and else none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ..conformance.claims import Claims
from ..conformance.contract import level_title
from ..conformance.grade import grade
from ..conformance.registry import implemented
from ..conformance.report import StoreReport
from ..verdicts import ClauseResult, Verdict
from .outcome import PROPERTY

__all__ = ["sentences", "unreached"]

_LEVEL = f"{PROPERTY}claimed_level"
_CLEAN = (Verdict.PASS, Verdict.NOT_APPLICABLE, Verdict.NOT_RUN)


def sentences(items: Iterable[Mapping[str, str]], *, was_stopped: bool = False) -> list[tuple[str, bool]]:
    """Return a sentence for each target, and whether its store is without fault; `items` are properties of reports.

    `was_stopped` says that pytest has ended before all that was asked had been tried.
    """
    items = list(items)
    denied = {item[f"{PROPERTY}target"] for item in items if item.get(f"{PROPERTY}denied")}
    not_reached = unreached(items)
    said = []
    gaps = {(item[f"{PROPERTY}target"], item[f"{PROPERTY}clause"]) for item in items if item.get(f"{PROPERTY}gap")}
    for target, results in _results(items).items():
        known = {clause for of, clause in gaps if of == target}
        faults = ["claims FAIL"] if target in denied else []
        faults += [not_reached[target]] if target in not_reached else []
        is_clean = not faults and all(result.verdict in _CLEAN for result in results)
        said.append((f"{target}: {'; '.join([_sentence(results, known, was_stopped=was_stopped), *faults])}", is_clean))
    return said


def unreached(items: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return a sentence for each target whose claimed level was not reached, though all clauses of it were tried.

    The items of a store may have been spread over the workers of xdist, so this can be told at the end only.
    """
    items = list(items)
    claims = {
        item[f"{PROPERTY}target"]: Claims(int(item[_LEVEL]), source=item.get(f"{PROPERTY}claimed_in", ""))
        for item in items
        if item.get(_LEVEL)
    }
    found = {}
    for target, results in _results(items).items():
        if target in claims:
            report = StoreReport(target, tuple(results), grade(results), (), 0, 0.0, claims[target])
            if report.level_kept is False:
                found[target] = report.level_text
    return found


def _results(items: Iterable[Mapping[str, str]]) -> dict[str, list[ClauseResult]]:
    results: dict[str, dict[str, ClauseResult]] = {}
    for item in items:
        if f"{PROPERTY}clause" not in item:
            continue
        clause = item[f"{PROPERTY}clause"]
        result = ClauseResult(
            clause,
            item[f"{PROPERTY}title"],
            Verdict(item[f"{PROPERTY}verdict"]),
            scenarios=int(item[f"{PROPERTY}scenarios"]),
        )
        results.setdefault(item[f"{PROPERTY}target"], {})[clause] = result
    return {target: list(found.values()) for target, found in results.items()}


def _sentence(results: list[ClauseResult], known: Collection[str], *, was_stopped: bool) -> str:
    gap = f"FAIL (known gap{'' if len(known) == 1 else 's'})"
    by_verdict: dict[str, list[str]] = {name: [] for name in (*(each.value for each in Verdict), gap)}
    for each in results:
        by_verdict[gap if each.clause in known else each.verdict.value].append(each.clause)
    passed = len(by_verdict.pop(Verdict.PASS.value))
    others = [f"{', '.join(ids)} {verdict}" for verdict, ids in by_verdict.items() if ids]
    found = "; ".join([f"{passed} clause{'' if passed == 1 else 's'} passed", *others])
    return f"{found}; {_level(results, was_stopped=was_stopped)}"


def _level(results: list[ClauseResult], *, was_stopped: bool) -> str:
    """Never claim what was not tried: a level is given by all of its clauses."""
    every = [clause.id for clause in implemented()]
    graded = grade(results)
    if {result.clause for result in results} != set(every):
        why = "the run was stopped" if was_stopped else "only a part was asked"
        return f"no level, since {why} ({len(results)} of {len(every)})"
    if graded.level is not None:
        return level_title(graded.level)
    if all(result.verdict in _CLEAN for result in results):
        return graded.text.splitlines()[1]  # what stops level 1
    return "no level"
