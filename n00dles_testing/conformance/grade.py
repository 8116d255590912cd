"""The level that a store has reached, what stops the next one, and all that nobody has tried: in a few lines.

A level is reached when every clause of it has passed, and the levels below it are reached. What was not run, not asked
for or has no check is no pass. What does not apply, as a probe has proven, is named, and stops no level where a store
may rightly be without it: of level 1 anything, as damaged records of a store without any; of level 4 all but W01 to
W04, as leases that are not offered, or the death of a server that there is not. Level 3 may not apply as a whole: it is
then set aside, since the disk is that of a server, and its promise to keep. Of level 2 each clause has to pass.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..verdicts import ClauseResult, Verdict
from .contract import LEVELS, PLAINLY, level_title
from .registry import implemented

__all__ = ["LOST_AT_A_RESTART", "Grade", "counts_for", "grade", "settled", "spans"]

_NOT_CHECKED, _NOT_ASKED = "not checked by this release", "not asked for"
_WORST_FIRST = (
    *(each.value for each in (Verdict.FAIL, Verdict.VACUOUS, Verdict.UNKNOWN, Verdict.NOT_RUN, Verdict.NOT_APPLICABLE)),
    _NOT_ASKED,
    _NOT_CHECKED,
)
_SECOND, _POWER_SAFE = 2, 3
_OF_ANY_SHARED_STORE = ("W01", "W02", "W03", "W04")
"""What level 4 asks of every store: the others ask for a server, leases, a pool or retention."""
_UNDISTURBED = (*(f"S{number:02}" for number in range(1, 13)), "C01", "C02")
"""What is about calls that nothing disturbs."""
LOST_AT_A_RESTART = "lost at a restart"
"""How the note ends that says what a store loses of a run's bookkeeping."""
_SHOWN_REASONS = 3
_SHORTEST_SPAN = 3


@dataclass(frozen=True, slots=True)
class Grade:
    """The level that a store has reached, with its limits: `text` never claims more than was tried.

    `level` is None if not even level 1 is reached. The first line of `text` says what was reached and which clauses
    the store breaks, the next ones what stops the next level, and what this release does not check at all.
    `not_implemented` are the clauses that have no check: whether the store keeps them, nobody knows.
    """

    level: int | None
    text: str
    not_implemented: tuple[str, ...]


def grade(results: Sequence[ClauseResult]) -> Grade:
    """Return the highest level that is reached, and what to say about it."""
    results = settled(results)
    by_clause = {result.clause: result for result in results}
    checked = {each.id for each in implemented()}
    missing = tuple(id_ for _, clauses in LEVELS.values() for id_ in clauses if id_ not in checked)
    is_aside = _is_aside(by_clause)
    counted = [number for number in LEVELS if number != _POWER_SAFE or not is_aside]
    reached = list(itertools.takewhile(lambda number: _is_reached(number, by_clause), counted))
    following = next((number for number in counted if number not in reached), 0)
    stops = _what_stops(following, by_clause, checked)
    aside = _set_aside(by_clause) if is_aside and _SECOND in reached else []
    lines = [_headline(reached, results), *aside, *stops, *_unknown(missing, following if stops else 0)]
    return Grade(reached[-1] if reached else None, "\n".join([*lines, *_lost(results)]), missing)


def _is_aside(by_clause: dict[str, ClauseResult]) -> bool:
    """Whether no clause of level 3 applies: the store has no file that a power loss could harm."""
    found = [by_clause[id_].verdict if id_ in by_clause else None for id_ in LEVELS[_POWER_SAFE][1]]
    return set(found) == {Verdict.NOT_APPLICABLE}


def _set_aside(by_clause: dict[str, ClauseResult]) -> list[str]:
    reason = _reason(by_clause[LEVELS[_POWER_SAFE][1][0]]).partition(": ")[0]
    return [f"{level_title(_POWER_SAFE)} is the server's: {reason}"]


def _lost(results: Iterable[ClauseResult]) -> list[str]:
    """Tell what a store loses that no clause asks for: whoever reads the level may count on it."""
    notes = [(each.clause, note) for each in results for note in each.reason.split("; ")]
    return [f"note of {clause}: the store {note}" for clause, note in notes if note.endswith(LOST_AT_A_RESTART)]


def settled(results: Sequence[ClauseResult]) -> tuple[ClauseResult, ...]:
    """Return the results, with UNKNOWN for a PASS that left out calls for a fault that no other clause has found.

    A store that fails at a call already undisturbed is told so by the clauses about that. If they have all passed, it
    was something else: a fault that comes and goes, or one of the suite.
    """
    fine = {each.clause for each in results if each.verdict in (Verdict.PASS, Verdict.NOT_APPLICABLE)}
    if not fine.issuperset(_UNDISTURBED):
        return tuple(results)
    return tuple(
        replace(each, verdict=Verdict.UNKNOWN, reason=f"{_nobody_knows(each)}; {each.reason}")
        if each.untried and each.verdict is Verdict.PASS
        else each
        for each in results
    )


def _nobody_knows(result: ClauseResult) -> str:
    return (
        f"{', '.join(result.untried)} came out wrong undisturbed, which no other clause has seen, and was not tried "
        "with a disturbance. Run the check again"
    )


def _is_reached(level: int, by_clause: dict[str, ClauseResult]) -> bool:
    verdicts = {id_: by_clause[id_].verdict if id_ in by_clause else None for id_ in LEVELS[level][1]}
    if level == _POWER_SAFE:
        return set(verdicts.values()) == {Verdict.PASS}
    return Verdict.PASS in verdicts.values() and all(counts_for(id_, verdict) for id_, verdict in verdicts.items())


def counts_for(clause: str, verdict: Verdict | None) -> bool:
    """Whether a clause does not stop its level, or one above it, with this verdict; None: it was not tried."""
    may_not_apply = clause not in (*LEVELS[_SECOND][1], *_OF_ANY_SHARED_STORE)
    return verdict is Verdict.PASS or (may_not_apply and verdict is Verdict.NOT_APPLICABLE)


def _headline(reached: Sequence[int], results: Sequence[ClauseResult]) -> str:
    level = reached[-1] if reached else None
    failed = [each.clause for each in results if each.verdict is Verdict.FAIL]
    passed = [each.clause for each in results if each.verdict is Verdict.PASS]
    aside = [each.clause for each in results if each.verdict is Verdict.NOT_APPLICABLE]
    if level is None:
        if failed:
            return f"no level: the store breaks {', '.join(failed)}"
        return f"no level: {f'no fault found by {spans(passed)}' if passed else 'nothing was shown'}"
    parts = [f"{level_title(level)}: {_kept(reached)} passed"]
    aside = [id_ for id_ in aside if any(id_ in LEVELS[number][1] for number in reached)]
    parts += [f"{spans(aside)} do{'es' if len(aside) == 1 else ''} not apply"] if aside else []
    parts += [f"the store breaks {', '.join(failed)}"] if failed else []
    return "; ".join(parts)


def _kept(reached: Sequence[int]) -> str:
    *others, last = reached
    if not others:
        return "every clause of it"
    if len(others) == 1 or list(reached) != list(range(1, last + 1)):
        return f"every clause of levels {', '.join(map(str, others))} and {last}"
    return f"every clause of levels 1 to {last}"


def _what_stops(level: int, by_clause: dict[str, ClauseResult], checked: set[str]) -> list[str]:
    """Say which clauses stop the next level, and what to do about those that were not run."""
    if level not in LEVELS or not checked.intersection(LEVELS[level][1]):
        return []
    if all(id_ in by_clause and by_clause[id_].verdict is Verdict.NOT_APPLICABLE for id_ in LEVELS[level][1]):
        return [f"{level_title(level)} does not apply: {_reason(by_clause[LEVELS[level][1][0]]).partition(': ')[0]}"]
    found: dict[str, list[str]] = {}
    for id_ in LEVELS[level][1]:
        result = by_clause.get(id_)
        if result is None:
            found.setdefault(_NOT_ASKED if id_ in checked else _NOT_CHECKED, []).append(id_)
        elif not counts_for(id_, result.verdict):
            found.setdefault(result.verdict.value, []).append(id_)
    words = "; ".join(f"{spans(found[what])} {what}" for what in _WORST_FIRST if what in found)
    not_run = [by_clause[id_] for id_ in found.get(Verdict.NOT_RUN.value, [])]
    return [
        f"{level_title(level)} not reached: {words or 'nothing of it has passed'}",
        *(f"  {each.clause} was not run: {_reason(each)}" for each in not_run[:_SHOWN_REASONS]),
    ]


def _reason(result: ClauseResult) -> str:
    """Return the first of what a result says: further notes stand behind a semicolon."""
    return result.reason.partition("; ")[0] or result.verdict.value


def _unknown(missing: Sequence[str], told: int) -> list[str]:
    """Name what nobody has tried, the worst of it in words; what is missing of the level `told` has been named."""
    whole = [level for level, (_, clauses) in LEVELS.items() if set(clauses) <= set(missing)]
    unknown = [id_ for id_ in missing if told not in LEVELS or id_ not in LEVELS[told][1]]
    lines = []
    if whole:
        lines.append(f"{' and '.join(level_title(level) for level in whole)}: not checked by this release")
    if unknown:
        lines.append(f"nothing is known of {_in_words(unknown)}")
    return lines


def _in_words(ids: Sequence[str]) -> str:
    plainly = [(words, [id_ for id_ in clauses if id_ in ids]) for words, clauses in PLAINLY]
    named = [f"{words} ({spans(found)})" for words, found in plainly if found]
    others = [id_ for id_ in ids if all(id_ not in found for _, found in plainly)]
    return ", ".join([*named, *([spans(others)] if others else [])])


def spans(ids: Iterable[str]) -> str:
    """Write ids with runs of them shortened: `S01–S09, S11, C01, C02`."""
    runs: list[list[str]] = []
    for _, run in itertools.groupby(enumerate(ids), key=lambda pair: (pair[1][0], int(pair[1][1:]) - pair[0])):
        runs.append([id_ for _, id_ in run])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) >= _SHORTEST_SPAN else ", ".join(run) for run in runs)
