"""What is said at the end about each store: the level reached, if all of its clauses were tried, and else none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..conformance.contract import level_title
from ..conformance.grade import grade
from ..conformance.registry import implemented
from ..verdicts import ClauseResult, Verdict
from .outcome import PROPERTY

__all__ = ["sentences"]


_CLEAN = (Verdict.PASS, Verdict.NOT_APPLICABLE, Verdict.NOT_RUN)


def sentences(items: Iterable[Mapping[str, str]]) -> list[tuple[str, bool]]:
    """Return a sentence for each target, and whether its store is without fault; `items` are properties of reports."""
    results: dict[str, dict[str, ClauseResult]] = {}
    denied: dict[str, str] = {}
    for item in items:
        if f"{PROPERTY}clause" not in item:
            denied[item[f"{PROPERTY}target"]] = item.get(f"{PROPERTY}denied", "")
            continue
        clause = item[f"{PROPERTY}clause"]
        result = ClauseResult(
            clause,
            item[f"{PROPERTY}title"],
            Verdict(item[f"{PROPERTY}verdict"]),
            scenarios=int(item[f"{PROPERTY}scenarios"]),
        )
        results.setdefault(item[f"{PROPERTY}target"], {})[clause] = result
    said = []
    for target, found in results.items():
        claims = "; claims FAIL" if denied.get(target) else ""
        is_clean = not claims and all(result.verdict in _CLEAN for result in found.values())
        said.append((f"{target}: {_sentence(list(found.values()))}{claims}", is_clean))
    return said


def _sentence(results: list[ClauseResult]) -> str:
    by_verdict = {verdict: [each.clause for each in results if each.verdict is verdict] for verdict in Verdict}
    passed = len(by_verdict.pop(Verdict.PASS))
    others = [f"{', '.join(ids)} {verdict.value}" for verdict, ids in by_verdict.items() if ids]
    found = "; ".join([f"{passed} clause{'' if passed == 1 else 's'} passed", *others])
    return f"{found}; {_level(results)}"


def _level(results: list[ClauseResult]) -> str:
    """Never claim what was not tried: a level is given by all of its clauses."""
    every = [clause.id for clause in implemented()]
    graded = grade(results)
    if {result.clause for result in results} != set(every):
        return f"no level, since only a part was asked ({len(results)} of {len(every)})"
    if graded.level is not None:
        return level_title(graded.level)
    if all(result.verdict in _CLEAN for result in results):
        return graded.text.splitlines()[1]  # what stops level 1
    return "no level"
