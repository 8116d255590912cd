"""The table of the field trial, and a page of stories for each subject, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from n00dles_testing.conformance.contract import LEVELS, level_title
from n00dles_testing.conformance.grade import spans
from n00dles_testing.report.json_file import write_whole

from .results import BY_HAND, CLAUSES, FAILS, NOT_TRIED, word

__all__ = ["FOLDER", "TABLE", "pages"]

TABLE = "field-trial.md"
FOLDER = "field-trial"
_BACKENDS = "../../conformance/backends"


def pages(results: Path, subjects: Sequence[Mapping[str, Any]]) -> list[Path]:
    """Write the table and a page for each subject into the folder of results; return their paths."""
    written = [(results / TABLE, _table_page(subjects))]
    written += [(results / FOLDER / f"{each['subject']}.md", _subject_page(each)) for each in subjects]
    for path, lines in written:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, "\n".join(lines).rstrip() + "\n")
    return [path for path, _ in written]


def _table_page(subjects: Sequence[Mapping[str, Any]]) -> list[str]:
    tried = [each for each in subjects if each["results"]]
    not_tried = [each for each in subjects if not each["results"]]
    return [
        "# The field trial: the suite on the stores of others",
        "",
        "Made by `make field-trial`. Each subject is a published package, at the newest version that pip finds, used",
        "as its own documentation recommends, behind [an adapter](../backends) of three methods.",
        "",
        "| in the table | means |",
        "|---|---|",
        "| pass | the clause was tried, and held |",
        "| **fails** | it was broken, the subject promises it, and a script that uses only the subject's own interface "
        "shows it (`conformance/backends/confirmations/`) |",
        "| **fails**, by hand | the suite finds nothing, or has not tried it yet, and such a script shows it |",
        "| fails? | it was broken, and no such script confirms it yet |",
        "| gap | a known gap: it was broken, but the subject neither promises it nor offers anything to build it on |",
        "| – | it does not apply, as a probe has shown |",
        "| not run | it could not be tried; the page of the subject says why |",
        "| (empty) | nobody has tried it yet |",
        "",
        "A gap is no fault of the subject. It says what an executor that stands on it has to do by itself, or to do "
        "without.",
        "",
        *_grid(
            ("subject", "version", "breaks", "gaps"),
            [
                (
                    _link(each),
                    _version(each),
                    _linked(each, FAILS, BY_HAND),
                    f"{sum(word(result, each) == 'gap' for result in each['results'])}",
                )
                for each in tried
            ],
        ),
        *(["", "Not run:", ""] if not_tried else []),
        *(f"- {_link(each)}: {each['not_run']}" for each in not_tried),
        *(line for level in LEVELS for line in _level(level, tried)),
    ]


def _level(level: int, subjects: Sequence[Mapping[str, Any]]) -> list[str]:
    clauses = LEVELS[level][1]
    rows = [(_link(each), *(_cell(each, clause) for clause in clauses)) for each in subjects]
    title = level_title(level)
    contract = "../../docs/reference/contract.md"
    return [
        "",
        f"## {title[:1].upper()}{title[1:]}",
        "",
        f"What each clause says: [the contract]({contract}).",
        "",
        *_grid(("subject", *clauses), rows),
    ]


def _cell(subject: Mapping[str, Any], clause: str) -> str:
    result = next((each for each in subject["results"] if each["clause"] == clause), None)
    if result is None:
        return ""
    told = word(result, subject)
    return told if told in ("pass", "–") else f"[{told}]({FOLDER}/{subject['subject']}.md#{clause.lower()})"


def _linked(subject: Mapping[str, Any], *wanted: str) -> str:
    clauses = [each["clause"] for each in subject["results"] if word(each, subject) in wanted]
    return ", ".join(f"[{each}]({FOLDER}/{subject['subject']}.md#{each.lower()})" for each in clauses)


def _link(subject: Mapping[str, Any]) -> str:
    return f"[{subject['title']}]({FOLDER}/{subject['subject']}.md)"


def _version(subject: Mapping[str, Any]) -> str:
    """Return the version of the subject itself, the first of its packages."""
    name, version = next(iter(subject["versions"].items()))
    return f"Python {version}" if name == "python" else version


def _subject_page(subject: Mapping[str, Any]) -> list[str]:
    if not subject["results"]:
        return [f"# {subject['title']}", "", subject["about"], "", f"NOT RUN: {subject['not_run']}"]
    versions = ", ".join(f"{name} {version}" for name, version in subject["versions"].items())
    passed = [each["clause"] for each in subject["results"] if each["verdict"] == "PASS"]
    aside = [each["clause"] for each in subject["results"] if each["verdict"] == "NOT APPLICABLE"]
    tried = {each["clause"] for each in subject["results"] if each["verdict"] != NOT_TRIED}
    untried = [clause for clause in CLAUSES if clause not in tried]
    return [
        f"# {subject['title']}",
        "",
        subject["about"],
        "",
        f"{_checked(subject)}: {versions}. "
        f"The adapter is [`{subject['subject']}.py`](../../backends/{subject['subject']}.py).",
        "",
        f"Passed: {spans(passed) or 'nothing'}.{f' Do not apply: {spans(aside)}.' if aside else ''}"
        f"{f' Not tried yet: {spans(untried)}.' if untried else ''}",
        "",
        *_confirmations(subject),
        *(line for each in subject["results"] for line in _story(each, subject)),
    ]


def _checked(subject: Mapping[str, Any]) -> str:
    if not subject["checked_at"]:
        return "Not checked yet"
    return f"Checked on {subject['checked_at']} with seed {subject['seed']}, in {subject['seconds']} s"


def _confirmations(subject: Mapping[str, Any]) -> list[str]:
    if not subject["confirmations"]:
        return []
    shown = [
        (
            each["clause"],
            f"[`{each['script']}`](../../backends/confirmations/{each['script']})",
            f"{'CONFIRMED' if each['confirmed'] else 'NOT CONFIRMED'}: {_escaped(each['said'])}",
        )
        for each in subject["confirmations"]
    ]
    return ["## Shown without the suite", "", *_grid(("clause", "script", "what it says"), shown), ""]


def _story(result: Mapping[str, Any], subject: Mapping[str, Any]) -> list[str]:
    told = word(result, subject)
    clause = result["clause"]
    if told in ("pass", "–"):
        gap = subject["gaps"].get(clause) if told == "pass" else None
        return [f"{clause} is declared as a gap ({gap}), and passed this time.", ""] if gap else []
    lines = [f'<a id="{clause.lower()}"></a>', "", f"## {clause}: {result['title']}", ""]
    finds = "has not tried it yet" if result["verdict"] == NOT_TRIED else "finds nothing"
    lines += [f"The suite {finds}; the script above shows it.", ""] if told == BY_HAND else []
    lines += [f"Known gap: {subject['gaps'][clause]}.", ""] if told == "gap" else []
    lines += (
        [f"{result['verdict']}: {_escaped(result['reason'])}.", ""]
        if not result["findings"] and told != BY_HAND
        else []
    )
    for finding in result["findings"]:
        lines += [f"**{_escaped(finding['message'])}**", "", "```text", *finding["story"], "```", ""]
    again = next((each["replay"] for each in result["findings"] if each["replay"]), "")
    more = f" {result['more']} more of it." if result["more"] else ""
    return [*lines, f"Again: `{again}`.{more}", ""] if again else lines


def _grid(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    headings = list(headings)
    return [f"| {' | '.join(headings)} |", "|" + "---|" * len(headings), *(f"| {' | '.join(row)} |" for row in rows)]


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("\n", " ")
