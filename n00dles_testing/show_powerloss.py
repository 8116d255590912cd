"""What the command `powerloss` shows: its progress, a table of the models, and a story of each kind of fault."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .conformance.losing_power import LIMIT, PowerLossOfStore
from .conformance.power_loss import FAILED_SYNC
from .conformance.power_safe import REQUIRED, STRICTEST
from .conformance.replay import powerloss_line
from .conformance.served import password_hidden
from .conformance.traced import token_of
from .powerloss.brief import brief
from .powerloss.exploring import HANGS
from .powerloss.models import MODELS
from .powerloss.words import listed
from .report.escape import one_line
from .report.terminal import StepDisplay, print_line, print_notes, print_table

__all__ = ["PowerLossProgress", "conclusion", "print_report"]

_SHOWN_LOSSES = 6
_SAYS_EVERY = 5.0
_ADVICE = "what a store of files needs: docs/how-to/survive-a-power-loss.md"


class PowerLossProgress:
    """Shows how it goes on: on a terminal a bar, elsewhere a line every few seconds."""

    def __init__(self, target: str, display: StepDisplay, models: Sequence[str], budget: int) -> None:
        self._display = display
        self._models = list(models) or list(MODELS)
        self._budget = budget
        self._began = self._said_at = time.monotonic()
        self._done = self._tried = 0
        self._of_model = ("", 0)
        display.say(Text(f"cutting the power under {one_line(password_hidden(target))}", "bold"))
        display.start(len(self._models) * budget)

    def on_state(self, model: str, tried: int) -> None:
        """So many states have been judged of a model, or of one more sync that fails."""
        before, count = self._of_model
        self._tried += tried - count if model == before and tried >= count else tried
        self._of_model = (model, tried)
        if model in self._models:
            done = self._models.index(model) * self._budget + min(tried, self._budget)
            self._display.advance(max(0, done - self._done))
            self._done = max(self._done, done)
        said = f"{model}: {tried} states of the disk tried"
        self._display.at(said)
        if not self._display.is_live and time.monotonic() - self._said_at > _SAYS_EVERY:
            self._said_at = time.monotonic()
            spent = self._said_at - self._began
            left = spent / max(self._tried, 1) * (len(self._models) * self._budget - self._done)
            more = f", up to {left:.0f} s left" if model in self._models else ""
            self._display.say(Text(f"{said}, {spent:.0f} s so far{more}"))


def conclusion(found: PowerLossOfStore) -> str:
    """Say in a line what was found."""
    tried = sum(report["tried"] for report in found.models)
    tried += sum(report["tried"] for each in found.failed_syncs for report in each["models"])
    count = len({finding["kind"] for _, finding in found.findings})
    said = f"{count} kind{'' if count == 1 else 's'} of fault" if count else "no fault"
    causes = {(kind, cause) for kind, cause in _causes(found) if cause}
    if len(causes) > count:
        said += f", of {len(causes)} causes,"
    others = {f["kind"] for report in found.models if not _counts(found, report) for f in report["findings"]}
    others -= {finding["kind"] for _, finding in found.findings}
    if others:
        said += f" under the required models, {len(others)}{' more' if count else ''} under {STRICTEST},"
    return f"{said} found; {tried} disk states tried in {found.seconds:.1f} s"


def _counts(found: PowerLossOfStore, report: dict[str, Any]) -> bool:
    return report["model"] in (*REQUIRED, *found.named)


def _causes(found: PowerLossOfStore) -> Iterator[tuple[str, tuple[str, ...]]]:
    for _, finding in found.findings:
        for each in (finding, *finding["further"]):
            yield finding["kind"], tuple(each["cause"])


def print_report(console: Console, found: PowerLossOfStore, clauses: list[dict[str, str]]) -> None:
    """Print the table, the story of each kind of fault, and what follows for each of the `clauses`, last."""
    if found.note:
        print_notes(console, [one_line(found.note)])
    if found.reason:
        print_line(console, Text(f"not tried: {one_line(found.reason)}", "bold yellow"))
        return
    print_table(console, _table(found))
    for report in found.models:
        if report["hung"] >= HANGS:
            rest = f"it hung in {report['hung']} states ({found.limit:g} s each, see --limit)"
            print_notes(console, [f"{report['model']}: {rest}, so the rest was not tried"])
    if found.no_failed_syncs:
        print_notes(console, [f"failed sync: not tried, since {found.no_failed_syncs}"])
    stories = _stories(found)
    for story in stories:
        _print_story(console, story)
    print_notes(
        console,
        [
            f"{len(found.workload)} calls of the store made {found.operations} changes and {found.syncs} syncs; "
            f"{listed(REQUIRED)} are required; {STRICTEST} is optional",
            *([_ADVICE] if stories else []),
        ],
    )
    style = "bold green" if found.ok else "bold red" if found.findings else "bold yellow"
    if found.unsure:
        print_line(console, Text(f"not known: {one_line(found.unsure)}", "bold yellow"))
    print_line(console, Text(conclusion(found), style))
    print_notes(console, [_clause_line(each) for each in clauses])


def _clause_line(each: dict[str, str]) -> str:
    reason = f": {brief(one_line(each['reason']))}" if each["verdict"] in ("UNKNOWN", "NOT RUN") else ""
    return f"{each['clause']} {each['verdict']}{reason}"


def _table(found: PowerLossOfStore) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("model", no_wrap=True)
    table.add_column("stands for", ratio=1)
    table.add_column("states tried", justify="right")
    table.add_column("findings")
    for name, about, tried, findings in _rows(found):
        said = ", ".join(findings) or "none"
        table.add_row(Text(name), Text(about), tried, Text(said, "bold red" if findings else "green"))
    return table


def _rows(found: PowerLossOfStore) -> Iterator[tuple[str, str, str, list[str]]]:
    for report in found.models:
        findings = [f"{finding['kind']} in {finding['count']}" for finding in report["findings"]]
        tried = str(report["tried"])
        if report["at_least"] is not None:
            tried = f"sampled {tried} of at least {report['at_least']}"
        yield report["model"], MODELS[report["model"]].about, tried, findings
    if found.failed_syncs:
        reports = [report for each in found.failed_syncs for report in each["models"]]
        kinds = [finding["kind"] for report in reports for finding in report["findings"]]
        findings = [f"{kind} after {kinds.count(kind)}" for kind in dict.fromkeys(kinds)]
        about = f"{len(found.failed_syncs)} syncs fail in turn"
        yield FAILED_SYNC, about, str(sum(report["tried"] for report in reports)), findings


@dataclass
class _Story:
    """A finding as it is told: `where` are the models, or failed syncs, that show it, the first of which is told.

    `further` are other causes of the same kind of fault, each with where it was found first, and the replay of that.
    """

    workload: tuple[str, ...]
    finding: dict[str, Any]
    replay: str
    where: list[str] = field(default_factory=list)
    further: dict[tuple[str, ...], tuple[str, dict[str, Any], str]] = field(default_factory=dict)


def _stories(found: PowerLossOfStore) -> list[_Story]:
    """Return each finding once, whatever the models that show it."""
    stories: dict[Any, _Story] = {}
    for report in found.models:
        replay = _replay(found, [report["model"]])
        for finding in report["findings"]:
            _add(stories, report["model"], _Story(found.workload, finding, replay))
    replay = _replay(found, [])
    for each in found.failed_syncs:
        for report in each["models"]:
            for finding in report["findings"]:
                where = f"{report['model']}, {each['sync']} having failed with EIO"
                _add(stories, where, _Story(found.again, finding, replay))
    for story in stories.values():
        kind = story.finding["kind"]
        story.further = {c: each for c, each in story.further.items() if (story.workload, kind, c) not in stories}
    return list(stories.values())


def _replay(found: PowerLossOfStore, models: Sequence[str]) -> str:
    limit = "" if found.limit == LIMIT else f" --limit {found.limit:g}"
    return powerloss_line(found.target, models, found.seed, found.budget) + limit


def _add(stories: dict[Any, _Story], where: str, story: _Story) -> None:
    finding = story.finding
    key = (story.workload, finding["kind"], tuple(finding["cause"]) or finding["words"])
    replay = story.replay
    story = stories.setdefault(key, story)
    story.where.append(where)
    for each in finding["further"]:
        story.further.setdefault(tuple(each["cause"]), (where, each, replay))


def _print_story(console: Console, story: _Story) -> None:
    finding = story.finding
    first, *others = (brief(one_line(each)) for each in story.where)
    print_line(console, Text(f"\n{finding['kind']}  {first}", "bold red"))
    lines = [f"also under {'; '.join(others)}" if any(", " in each for each in others) else _also(others)]
    for number, title in enumerate(story.workload):
        token = token_of(number)
        if token in finding["invoked"]:
            end = "acknowledged" if token in finding["acknowledged"] else "not acknowledged"
            lines.append(f"call {token}   {title} → {end}")
    lines += [f"lost     {words}" for words in finding["lost"][:_SHOWN_LOSSES]]
    lines.append(f"on disk  {', '.join(finding['on_disk']) or 'no file'}")
    lines.append(f"found    {finding['message']}")
    lines += [f"then     {line}" for line in finding["details"] if "the second" in line]
    if not finding["lost"] or " reached the disk, " in finding["words"]:
        lines.append(f"why      {finding['words']}")
    lines.append(f"fix      {finding['fix']}")
    elsewhere: list[str] = []
    for where, each, replay in story.further.values():
        if where == story.where[0]:
            lines += [f"also     {each['words']}", f"fix      {each['fix']}"]
        else:
            elsewhere += [brief(f"also     under {where}: {each['words']}"), brief(f"fix      {each['fix']}")]
            elsewhere += [f"replay   {replay}"]
    lines = [brief(one_line(line)) for line in lines if line]
    lines += [one_line(line) for line in (f"replay   {story.replay}", *elsewhere)]
    print_notes(console, [f"  {line}" for line in lines])


def _also(models: list[str]) -> str:
    return f"also under {listed(models)}" if models else ""
