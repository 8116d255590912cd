"""What the page shows, worked out: the stores with their conclusions, the matrix, and the failures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..verdicts import Verdict
from .check_report import CheckedClause, CheckReport, ToldFinding
from .differences import Parts, marked
from .power_picture import Picture
from .timeline import Timeline, read_story

__all__ = ["Cell", "ClauseText", "Failure", "Group", "Page", "Row", "Store", "ToldFault"]

_MOST_FINDINGS = 50
_MOST_LINES = 200
_SHORT_NAME = 32
_COMMON_FACTORY = "open_store"
"""What nearly everybody calls the function that opens the store: the module says more."""
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\dZ")
_LEVEL = re.compile(r"level \d \([a-z-]+\)")
_HASH = re.compile(r"(?<![0-9a-zA-Z])([0-9a-f]{8})[0-9a-f]{20,120}([0-9a-f]{4})(?![0-9a-zA-Z])")
"""A name that is a hash is shortened where it is drawn: the story as text below has all of it."""
_BREAKS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[_:/])(?=\w)")


@dataclass(frozen=True, slots=True)
class ClauseText:
    """A clause as a reader needs it. `group` is the level that it belongs to, as `level 1 (contract)`.

    `sentence` is what the contract says, `documentation` what the check does, or "" where this release has no check.
    """

    id: str
    group: str
    title: str
    sentence: str
    documentation: str


@dataclass(frozen=True, slots=True)
class Look:
    """How a verdict is shown: never by colour alone."""

    css: str
    symbol: str
    word: str
    meaning: str


_LOOKS = {
    Verdict.PASS: Look("pass", "✓", "pass", "it was tried, at least once, and held every time"),
    Verdict.FAIL: Look("fail", "✗", "FAIL", "it is broken; the failure below tells how"),
    Verdict.VACUOUS: Look("vacuous", "∅", "vacuous", "the check tried nothing: an error, never a pass"),
    Verdict.UNKNOWN: Look("unknown", "?", "unknown", "the check ran, and cannot tell"),
    Verdict.NOT_RUN: Look("notrun", "○", "not run", "it could not be run here; the reason says why"),
    Verdict.NOT_APPLICABLE: Look(
        "na", "–", "n/a", "not applicable: the store does not offer it, and a probe proves that"
    ),
}
_KNOWN_GAP = Look("gap", "✗", "known gap", "it is broken, as the store's author declares")
_NO_LEVEL = Look("plain", "✓", "no level", "")
_NOT_TRIED = Look("none", "·", "not tried", "it was not asked for")


@dataclass(frozen=True, slots=True)
class Cell:
    """One clause on one store. `result` is None if it was not tried; `link` leads to the failure, if it is one."""

    store: Store
    look: Look
    result: CheckedClause | None
    link: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One clause on every store."""

    anchor: str
    clause: ClauseText
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """The clauses of a level: those that were tried on a store at least, and the ids of the others."""

    title: str
    rows: tuple[Row, ...]
    untried: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToldFault:
    """A finding with its time line, and what was allowed and came in parts, each with whether only this one has it.

    `picture` is there if it is a power loss.
    """

    finding: ToldFinding
    story: tuple[str, ...]
    timeline: Timeline
    allowed: Parts | None
    came: Parts | None
    picture: Picture | None = None

    @classmethod
    def of(cls, finding: ToldFinding) -> ToldFault:
        """Read the story of a finding."""
        story = finding.story[:_MOST_LINES]
        if left_out := len(finding.story) - len(story):
            story = (*story, f"… {left_out} more lines …")
        timeline = read_story([_HASH.sub(r"\1…\2", line) for line in story])
        allowed, came = timeline.detail("allowed"), timeline.detail("came")
        if allowed is not None and came is not None:
            compared: Sequence[Parts | None] = marked(allowed, came)
        else:
            compared = [None if text is None else [(text, False)] for text in (allowed, came)]
        picture = None if finding.picture is None else Picture.of(finding.picture)
        return cls(finding, story, timeline, compared[0], compared[1], picture)

    @property
    def other_details(self) -> list[tuple[str, str]]:
        """The labelled lines besides what was allowed and came."""
        return [(label.rstrip(), text) for label, text in self.timeline.details if label not in ("allowed", "came")]


@dataclass(frozen=True, slots=True)
class Failure:
    """A clause that a store breaks: the first fault is told whole, the others are folded."""

    anchor: str
    store: Store
    result: CheckedClause
    gap: str
    first: ToldFault | None
    others: tuple[ToldFault, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Store:
    """One report of a store: a name that is short and its own on this page, and what may be concluded."""

    anchor: str
    name: str
    report: CheckReport
    look: Look
    conclusion: str

    @property
    def gaps(self) -> dict[str, str]:
        """The clauses that are declared as known gaps and failed, with the reasons."""
        failed = {each.clause for each in self.report.results if each.verdict is Verdict.FAIL}
        return {gap.clause: gap.reason for gap in self.report.gaps if gap.clause in failed}

    @property
    def counts(self) -> list[tuple[Look, int]]:
        """How many clauses came to each verdict."""
        verdicts = [result.verdict for result in self.report.results]
        return [(look, verdicts.count(verdict)) for verdict, look in _LOOKS.items() if verdict in verdicts]

    @property
    def broken(self) -> list[str]:
        """The clauses that failed, without the known gaps."""
        known = {gap.clause for gap in self.report.gaps if gap.ok}
        return [
            each.clause for each in self.report.results if each.verdict is Verdict.FAIL and each.clause not in known
        ]

    @property
    def undecided(self) -> list[tuple[Look, CheckedClause]]:
        """The clauses that neither held nor failed, for the reason that each has."""
        open_ = (Verdict.UNKNOWN, Verdict.VACUOUS, Verdict.NOT_RUN)
        return [(_LOOKS[each.verdict], each) for each in self.report.results if each.verdict in open_]

    @property
    def words(self) -> list[str]:
        """The name in parts between which a line may break."""
        return _BREAKS.split(self.name)

    @property
    def limits(self) -> list[str]:
        """Why no higher level was reached and what nobody has tried, in the words of the report, a line each."""
        return [line for line in self.report.grade.split("\n")[1:_MOST_LINES] if not _LEVEL.fullmatch(line)]

    @property
    def problems(self) -> list[str]:
        """What makes the check fail besides the clauses that are broken: claims that are not kept, above all."""
        told = {f"{each.clause} {each.verdict.value}" for each in self.report.results}
        return [problem for problem in self.report.problems if problem not in told]


@dataclass(frozen=True, slots=True)
class Page:
    """Everything that the template shows."""

    headline: str
    stores: tuple[Store, ...]
    groups: tuple[Group, ...]
    failures: tuple[Failure, ...]
    legend: tuple[Look, ...]

    @property
    def title_of_stores(self) -> str:
        """Say how many stores there are; one of which there are several reports is one."""
        reports, targets = len(self.stores), len({store.report.target for store in self.stores})
        count = "The store" if targets == 1 else f"The {targets} stores"
        return count if targets == reports else f"{count}, in {reports} reports"

    @property
    def limits(self) -> list[str]:
        """What is to be said of the limits of every store, in the same words."""
        first, *others = (store.limits for store in self.stores)
        return [line for line in first if all(line in each for each in others)]

    @property
    def circumstances(self) -> str:
        """How all the stores were checked, if they were in the same way; the dates may differ."""
        reports = [store.report for store in self.stores]
        how = _common(
            [f"{each.written_by}, Python {each.python}, {each.platform}, seed {each.seed}" for each in reports]
        )
        dates = sorted(_date(each.written_at) for each in reports)
        when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
        return f"{how}, {when}" if how else when

    @classmethod
    def of(cls, reports: Sequence[CheckReport], contract: Sequence[ClauseText]) -> Page:
        """Work out the page. Clauses that only a report knows stand behind those of the contract."""
        stores = tuple(_stores(reports))
        failures = tuple(failure for store in stores for failure in _failures(store))
        known = {clause.id for clause in contract}
        strange = {
            result.clause: ClauseText(result.clause, "not in this release's contract", result.title, "", "")
            for report in reports
            for result in report.results
            if result.clause not in known
        }
        groups = tuple(_groups((*contract, *strange.values()), stores, failures))
        shown = {cell.look for group in groups for row in group.rows for cell in row.cells}
        looks = (*_LOOKS.values(), _KNOWN_GAP, _NOT_TRIED)
        return cls(_headline(stores), stores, groups, failures, tuple(look for look in looks if look in shown))


def _date(text: str) -> str:
    """Return a time as a person reads it, to the minute; what is none stays as it is."""
    found = _TIME.fullmatch(text)
    return f"{found[1]} {found[2]} UTC" if found else text


def _common(texts: Sequence[str]) -> str:
    return texts[0] if len(set(texts)) == 1 else ""


def _headline(stores: Sequence[Store]) -> str:
    if len(stores) == 1:
        return f"{stores[0].name}: {stores[0].conclusion}"
    targets = list(dict.fromkeys(store.report.target for store in stores))
    if len(targets) == 1:
        return f"{_short_name(targets[0])}: {_of_one_store(stores)}"
    total = len(targets)
    broken = len({store.report.target for store in stores if store.broken})
    if broken:
        return f"{broken} of {total} stores {'breaks' if broken == 1 else 'break'} the contract"
    bad = len({store.report.target for store in stores if not store.report.ok})
    if bad:
        return f"{bad} of {total} stores showed nothing, or {'is' if bad == 1 else 'are'} not what is claimed"
    return f"No fault was found in {total} stores"


def _of_one_store(reports: Sequence[Store]) -> str:
    """Say what several reports of one store come to."""
    total = len(reports)
    if broken := dict.fromkeys(clause for report in reports for clause in report.broken):
        bad = sum(bool(report.broken) for report in reports)
        return f"breaks {', '.join(broken)}, in {bad} of {total} reports"
    if bad := sum(not report.report.ok for report in reports):
        return f"{bad} of {total} reports showed nothing, or not what is claimed"
    return f"no fault was found in {total} reports"


def _stores(reports: Sequence[CheckReport]) -> Iterator[Store]:
    taken: dict[str, int] = {}
    commands: dict[str, set[str]] = {}
    for report in reports:
        commands.setdefault(report.target, set()).add(report.command)
    for number, report in enumerate(reports, 1):
        name = _short_name(report.target)
        if len(commands[report.target]) > 1:
            name = f"{name} ({report.command})"
        taken[name] = taken.get(name, 0) + 1
        own = name if taken[name] == 1 else f"{name} ({taken[name]})"
        yield Store(f"store-{number}", own, report, *_conclusion(report))


def _short_name(target: str) -> str:
    """Return what a reader calls a store: the name of a class, of a file or module, or of a database."""
    scheme, is_url, rest = target.partition("://")
    if is_url:
        name = f"{scheme} {rest.rstrip('/').rpartition('/')[2]}".strip()
    else:
        place, _, factory = target.rpartition(":")
        file = place.rpartition("/")[2]
        if factory == _COMMON_FACTORY:
            name = file.removesuffix(".py").rpartition(".")[2]
        else:
            name = f"{file}:{factory}" if file.endswith(".py") else factory
    return name if len(name) <= _SHORT_NAME else f"{name[:_SHORT_NAME]}…"


def _conclusion(report: CheckReport) -> tuple[Look, str]:
    """Say what a reader may conclude, and never more: the worst of it gives the look."""
    known = {gap.clause for gap in report.gaps if gap.ok}
    of = {verdict: [each.clause for each in report.results if each.verdict is verdict] for verdict in Verdict}
    passed = len(of[Verdict.PASS])
    new = ", ".join(id_ for id_ in of[Verdict.FAIL] if id_ not in known)
    gaps = ", ".join(id_ for id_ in of[Verdict.FAIL] if id_ in known)
    level = _level(report) if report.level else ""
    told: list[tuple[Look, str]] = []
    if new:
        told.append((_LOOKS[Verdict.FAIL], f"breaks {new}"))
    if of[Verdict.VACUOUS]:
        told.append((_LOOKS[Verdict.VACUOUS], f"showed nothing in {', '.join(of[Verdict.VACUOUS])}"))
    elif not passed and not new:
        told.append((_LOOKS[Verdict.VACUOUS], "nothing was shown"))
    elif not report.ok and not new:
        told.append((_LOOKS[Verdict.FAIL], "is not what it claims to be"))
    if gaps:
        told.append((_KNOWN_GAP, f"breaks {gaps}, as declared"))
    if level:
        told.append((_LOOKS[Verdict.PASS], level))
    if not told:
        told.append((_NO_LEVEL, f"no fault found in {passed} clause{'' if passed == 1 else 's'}; no level"))
    return told[0][0], "; ".join(words for _, words in told)


def _level(report: CheckReport) -> str:
    """Return the level as the report says it, with its name."""
    level = f"level {report.level}"
    return next((each for each in _LEVEL.findall(report.grade) if each.startswith(level)), level)


def _failures(store: Store) -> Iterator[Failure]:
    for number, result in enumerate(store.report.results, 1):
        if result.verdict is not Verdict.FAIL and not result.findings:
            continue
        told = [ToldFault.of(finding) for finding in result.findings[:_MOST_FINDINGS]]
        yield Failure(
            f"{store.anchor}-failure-{number}",
            store,
            result,
            store.gaps.get(result.clause, ""),
            told[0] if told else None,
            tuple(told[1:]),
            max(0, len(result.findings) - _MOST_FINDINGS),
        )


def _groups(clauses: Sequence[ClauseText], stores: Sequence[Store], failures: Sequence[Failure]) -> Iterator[Group]:
    links = {(failure.store.anchor, failure.result.clause): failure.anchor for failure in failures}
    results = {(store.anchor, each.clause): each for store in stores for each in store.report.results}
    tried = {clause for _, clause in results}
    titles = list(dict.fromkeys(clause.group for clause in clauses))
    anchors = {clause.id: f"clause-{number}" for number, clause in enumerate(clauses, 1)}
    for title in titles:
        of_group = [clause for clause in clauses if clause.group == title]
        rows = [
            Row(
                anchors[clause.id],
                clause,
                tuple(
                    _cell(store, results.get((store.anchor, clause.id)), links.get((store.anchor, clause.id), ""))
                    for store in stores
                ),
            )
            for clause in of_group
            if clause.id in tried
        ]
        untried = tuple(clause.id for clause in of_group if clause.id not in tried)
        yield Group(title, tuple(rows), untried)


def _cell(store: Store, result: CheckedClause | None, link: str) -> Cell:
    if result is None:
        return Cell(store, _NOT_TRIED, None)
    is_gap = result.verdict is Verdict.FAIL and result.clause in store.gaps
    return Cell(store, _KNOWN_GAP if is_gap else _LOOKS[result.verdict], result, link)
