"""Prove an executor: draw scenarios of every family, judge them, shrink and confirm what is found, and sum up.

report = prove("mypackage.loop:executor", examples=1000)
assert report.ok, str(report)
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial

from n00dles.stores.base import StateStore

from ..crash.clauses import CLAUSES
from ..crash.life import Executor
from ..crash.points import Point
from ..strategies import describe
from ..verdicts import ClauseResult, Finding, Verdict
from .confirm import confirmed
from .families import FAMILIES, SCOUTS, family_named
from .family import Family, Judgement, Trial
from .named import NamedExecutor, load_executor
from .probe import probe
from .report import CampaignError, CampaignProgress, CampaignReport
from .search import Found, Search, Tally
from .stage import Stage
from .tokens import CampaignToken

__all__ = ["DEFAULT_EXAMPLES", "load_executor", "prove", "replay"]

DEFAULT_EXAMPLES = 1000
_NO_LIMIT = 1_000_000
_RESERVE = 0.25
"""The share of a budget that is kept for telling what was found: shrinking, and confirming with real processes."""
_SHRINKING = 0.7
"""How much of its part of that a clause takes for shrinking."""
_MOST_HUNG = 5
"""After so many lives that hang no more are tried: each of them takes its whole time limit."""
_SCOUTED = 200
"""How many scenarios of disturbed lives have a pipeline almost of their own, before speed is what counts."""
_IDS = tuple(f"E{number:02}" for number in range(1, 19))
_TITLES = {clause.id: clause.title for clause in CLAUSES}
_GOLDEN = "that records of earlier releases load is proven by the golden files in tests/golden, not here"


def prove(
    executor: Executor | str | None = None,
    *,
    examples: int | None = None,
    seed: int = 0,
    budget: float | None = None,
    make_store: Callable[[], StateStore] | None = None,
    only: Collection[str] = (),
    confirm: bool = True,
    shrink_seconds: float = 20.0,
    on_progress: Callable[[CampaignProgress], None] = lambda progress: None,
) -> CampaignReport:
    """Try an executor on generated pipelines, disturbed at generated moments, and judge it by the clauses E01 to E18.

    `executor` is an object with `run` and `resume` (see `crash.life.Executor`), or names one as `module:object` or
    `file.py:object`; None is the one of n00dles. `examples` is how many scenarios are tried at least (1000 without a
    budget), `budget` how many seconds all may take: the scenarios, and, of what is found, shrinking and confirming.
    `seed` decides what is drawn. `make_store` makes the store of each run; by default it is one in memory, and for some
    a SQLite file. `only` names the clauses that are asked for.

    What is found is shrunk, for up to `shrink_seconds` a clause, and with `confirm` lived again with real processes,
    if another process can import the executor.

    `on_progress` is told of each scenario, and may raise to end it all. Raises `CampaignError` if the executor is none,
    or cannot be called, or tells its observers nothing, or no such clause is known.
    """
    named = load_executor(executor)
    wanted = _wanted(only)
    if examples is not None and examples < 1:
        raise CampaignError(f"examples={examples} tries nothing; it counts scenarios, from 1.")
    limit = examples if examples is not None else DEFAULT_EXAMPLES if budget is None else None
    told = _Told(on_progress, limit)
    reborn = named.target is not None
    with Stage(named.executor, make_store=make_store, on_play=told.again, reborn=reborn) as stage:
        campaign = _Campaign(named, stage, seed, wanted, told, budget=budget)
        probe(named, stage)
        campaign.search(limit)
        campaign.tell(confirm=confirm, shrink_seconds=shrink_seconds)
    return campaign.report()


def replay(token: CampaignToken, *, confirm: bool = True) -> CampaignReport:
    """Live one scenario again, and judge it. Raises `CampaignError` if its executor or family is not to be had."""
    named = load_executor(token.executor)
    try:
        family = family_named(token.trial.family)
    except (LookupError, StopIteration):
        raise CampaignError(
            f"the token is of a family {token.trial.family!r} that this release does not have."
        ) from None
    with Stage(named.executor, reborn=named.target is not None) as stage:
        campaign = _Campaign(named, stage, 0, frozenset(), _Told(lambda progress: None, None))
        probe(named, stage)
        campaign.replay(family, token.trial)
        campaign.tell(confirm=confirm, shrink_seconds=0)
    return campaign.report()


def _wanted(only: Iterable[str]) -> frozenset[str]:
    asked = frozenset(each.upper() for each in only)
    if unknown := asked - set(_IDS):
        raise CampaignError(f"there is no clause {', '.join(sorted(unknown))}; there are {_IDS[0]} to {_IDS[-1]}.")
    return asked or frozenset(_IDS)


class _Told:
    """Passes on how far a campaign is."""

    def __init__(self, on_progress: Callable[[CampaignProgress], None], total: int | None) -> None:
        self._on_progress = on_progress
        self._total = total
        self.searches: list[Search] = []
        self._doing = "trying one node"
        self._is_telling = False

    def again(self) -> None:
        """Tell that the same is still going on: also while a scenario is made simpler."""
        self.say(self._doing, is_telling=self._is_telling)

    def say(self, doing: str, *, is_telling: bool = False) -> None:
        """Tell what is going on."""
        self._doing, self._is_telling = doing, is_telling
        done = sum(search.tally.scenarios for search in self.searches)
        broken = sorted({clause for search in self.searches for clause in search.tally.found})
        self._on_progress(CampaignProgress(doing, done, self._total, tuple(broken), self._is_telling))


class _Campaign:
    """One campaign on its way: search, then tell what was found, then sum up."""

    def __init__(
        self,
        named: NamedExecutor,
        stage: Stage,
        seed: int,
        wanted: frozenset[str],
        told: _Told,
        *,
        budget: float | None = None,
    ) -> None:
        self._named = named
        self._stage = stage
        self._seed = seed
        self._wanted = wanted
        self._told = told
        self._searches = told.searches
        self._findings: dict[str, list[Finding]] = {}
        self._sizes: dict[str, int] = {}
        self._disturbances: Counter[str] = Counter()
        self._started = time.monotonic()
        self._searched = 0.0
        self._budget = budget

    def search(self, limit: int | None) -> None:
        """Try scenarios of every family that can speak of what is wanted, each its share."""
        families = [
            family
            for family in FAMILIES
            if family.clauses & self._wanted and not (family.on_disk and self._stage.has_own_store)
        ]
        shares = sum(family.share for family in families)
        left = shares
        for number, family in enumerate(families):
            part = family.share / shares
            most = _NO_LIMIT if limit is None else max(1, round(limit * part))
            is_over = partial(self._is_over, time.monotonic(), family.share / left)
            left -= family.share
            if family is FAMILIES[0]:
                scouted = min(most, _SCOUTED)
                self._try(SCOUTS, scouted, is_over, seed=self._seed * 100 + len(FAMILIES))
                most -= scouted
            if most > 0:
                self._try(family, most, is_over, seed=self._seed * 100 + number)
        self._searched = time.monotonic() - self._started

    def _try(self, family: Family, most: int, until: Callable[[], bool], *, seed: int) -> None:
        if self._stage.hung >= _MOST_HUNG:
            return
        search = Search(family, self._stage, seed=seed, only=self._wanted, until=until, on_trial=self._on_trial)
        self._searches.append(search)
        search.run(most)

    def replay(self, family: Family, trial: Trial) -> None:
        """Try one scenario."""
        search = Search(family, self._stage, seed=0, on_trial=self._on_trial)
        self._searches.append(search)
        search.try_all([trial])
        if search.tally.vacuous and not search.tally.found:
            # The undisturbed run was judged as well, and is not what the token is about.
            search.tally.scenarios = 0
            search.tally.behind.clear()
        self._wanted = frozenset(clause for clause, count in search.tally.behind.items() if count)
        self._wanted |= frozenset(search.tally.found)
        self._searched = time.monotonic() - self._started

    def _is_over(self, begun: float, part: float) -> bool:
        """Whether a family that has begun then has had its `part` of the time that was left."""
        if self._stage.hung >= _MOST_HUNG or self._budget is None:
            return self._stage.hung >= _MOST_HUNG
        is_any_found = any(search.tally.found for search in self._searches)
        ends = self._started + self._budget * (1 - _RESERVE if is_any_found else 1)
        return time.monotonic() > begun + part * (ends - begun)

    def _time_for(self, clauses: int) -> float:
        """Return how many seconds one of so many clauses that are still to be told may take."""
        if self._budget is None:
            return _NO_LIMIT
        return (self._started + self._budget - time.monotonic()) / clauses

    def _on_trial(self, trial: Trial, judgement: Judgement) -> None:
        if trial.family.startswith("lives") and not judgement.vacuous:
            self._disturbances.update(str(Point.parse(text).how) for text in trial.rest)
        self._told.say(f"{trial.family}: {describe(trial.spec)}")

    def tell(self, *, confirm: bool, shrink_seconds: float) -> None:
        """Shrink and tell the first fault of each clause; of one that two families break, that of the first family."""
        firsts: dict[str, Search] = {}
        for search in self._searches:
            firsts |= dict.fromkeys(sorted(set(search.tally.found) - set(firsts)), search)
        simplest: dict[str, Found] = {}
        for number, (clause, search) in enumerate(firsts.items(), 1):
            simplest[clause] = search.tally.found[clause]
            seconds = min(shrink_seconds, self._time_for(len(firsts) - number + 1) * _SHRINKING)
            if seconds > 0:
                self._told.say(f"shrinking {clause} ({number} of {len(firsts)})", is_telling=True)
                simplest[clause] = search.shrink(clause, seconds=seconds)
        for number, (clause, found) in enumerate(simplest.items(), 1):
            real = ""
            if confirm:
                which = f"{clause} ({number} of {len(firsts)})"
                self._told.say(f"trying {which} with real processes", is_telling=True)
                real = self._confirmed(found)
            self._sizes[clause] = len(found.trial.spec.nodes())
            self._findings[clause] = [_finding(found, firsts[clause].family, self._named, real=real)]

    def _confirmed(self, found: Found) -> str:
        if self._named.not_elsewhere:
            return f"in this process only: {self._named.not_elsewhere}"
        if self._time_for(1) <= 0:
            return "in this process only: no time was left to try it in another one"
        return confirmed(found, self._named.target)

    def report(self) -> CampaignReport:
        """Sum up."""
        tallies = [search.tally for search in self._searches]
        return CampaignReport(
            executor=self._named.title,
            seed=self._seed,
            scenarios=sum(tally.scenarios for tally in tallies),
            pipelines=sum(tally.pipelines for tally in tallies),
            clauses=tuple(self._result(clause, tallies) for clause in _IDS),
            disturbances=dict(sorted(self._disturbances.items())),
            vacuous=dict(sum((tally.vacuous for tally in tallies), Counter[str]()).most_common()),
            notes=tuple(self._notes()),
            seconds=time.monotonic() - self._started,
            scenario_seconds=self._searched,
            met={clause: found.number for tally in reversed(tallies) for clause, found in tally.found.items()},
            sizes=dict(sorted(self._sizes.items())),
        )

    def _notes(self) -> Iterator[str]:
        if self._stage.keeps_the_object and (self._named.target is not None or not self._named.importable):
            yield "what the executor keeps on itself outlives its deaths here: a fault hidden by that is not seen"
        if "E17" in self._wanted:
            yield f"E17: {_GOLDEN}"
        if self._stage.hung >= _MOST_HUNG:
            yield f"ended before its time: {self._stage.hung} lives did not come to an end within their time limit"

    def _result(self, clause: str, tallies: list[Tally]) -> ClauseResult:
        title = _TITLES.get(clause, "")
        behind = sum(tally.behind[clause] for tally in tallies)
        faulty = sum(tally.faulty[clause] for tally in tallies)
        if clause not in self._wanted:
            return ClauseResult(clause, title, Verdict.NOT_RUN, "not asked for")
        if faulty:
            found = tuple(self._findings.get(clause, ()))
            return ClauseResult(clause, title, Verdict.FAIL, f"broken in {faulty} scenarios", behind, findings=found)
        if not behind:
            return ClauseResult(clause, title, Verdict.VACUOUS, "no scenario that was drawn could have broken it")
        return ClauseResult(clause, title, Verdict.PASS, "", behind)


def _finding(found: Found, family: Family, named: NamedExecutor, *, real: str) -> Finding:
    clause, message, why = found.fault
    pipeline, *nodes = describe(found.trial.spec, nodes=True).split("\n")
    told = [f"{'pipeline':<9}{pipeline}", *(f"{'':<9}{line.strip()}" for line in nodes)]
    told += [f"{heading:<9}{text}" for heading, text in family.told(found.trial).items()]
    story = (*told, *found.judgement.story(why), *([f"{'seen':<9}{real}"] if real else []))
    if not named.importable:
        return Finding(clause, message.rstrip(".") + ".", (*story, f"no replay: {named.no_replay}"))
    token = CampaignToken(named.target, found.trial).encode()
    return Finding(clause, message.rstrip(".") + ".", story, f"n00dles-testing replay {token}")
