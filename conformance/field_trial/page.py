"""The table of the field trial, and a page of stories for each subject, as Markdown. Each cell leads to its story."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from n00dles_testing.conformance.contract import LEVELS, level_title
from n00dles_testing.conformance.grade import spans
from n00dles_testing.conformance.sentences import SENTENCES
from n00dles_testing.report.json_file import write_whole

from .matrix import FOLDER, PASSED, SET_ASIDE, UNTRIED, anchor, grid, link, place, short, words
from .results import BY_HAND, CLAUSES, FAILS, NOT_TRIED, word

__all__ = ["TABLE", "pages"]

TABLE = "field-trial.md"
_URL = re.compile(r"https://[^\s),]+")
_NOBODY = "·"
_CONTRACT = "../../../docs/reference/contract.md"


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
        "# The field trial: the suite on published stores",
        "",
        "Made by `make field-trial`. Each subject is a published package, at the newest version that pip finds, used",
        "as its own documentation recommends, behind [an adapter](../backends) of three methods. The stores of",
        "`n00dles` are those of this project.",
        "",
        *short(tried),
        "",
        "Each cell leads to its story. Below is a table for each level, with a column for each clause.",
        "",
        "| in the tables | means |",
        "|---|---|",
        "| pass | the clause was tried, and held |",
        "| **fails** | it was broken, the subject promises it, and a script that uses only the subject's own interface "
        "shows it (`conformance/backends/confirmations/`) |",
        "| **fails**, by hand | the suite finds nothing, or has not tried it yet, and such a script shows it |",
        "| fails? | it was broken, and no such script confirms it yet |",
        "| gap | a known gap: it was broken, but the subject neither promises it nor offers anything to build it on |",
        "| – | it does not apply, as a probe has shown |",
        "| unknown | it was tried, and could not be told; the story says why |",
        "| not run | it could not be tried; the story says why |",
        f"| {_NOBODY} | nobody has tried it yet |",
        "",
        "A gap is no fault of the subject. It says what an executor that stands on it has to do by itself, or to do "
        "without.",
        *(["", "## Not run", ""] if not_tried else []),
        *(f"- {link(each)}: {each['not_run']}" for each in not_tried),
        *(line for level in LEVELS for line in _level(level, tried)),
    ]


def _level(level: int, subjects: Sequence[Mapping[str, Any]]) -> list[str]:
    clauses = LEVELS[level][1]
    title = level_title(level)
    headings = [f"[{clause}](../../docs/reference/contract.md#{clause.lower()})" for clause in clauses]
    rows = [
        (
            link(each),
            *(f"[{said or _NOBODY}]({place(each, clause)})" for clause, said in words(each, clauses).items()),
        )
        for each in subjects
    ]
    return ["", f"## {title[:1].upper()}{title[1:]}", "", *grid(("store", *headings), rows)]


def _subject_page(subject: Mapping[str, Any]) -> list[str]:
    about = _URL.sub(r"<\g<0>>", subject["about"])
    if not subject["results"]:
        return [f"# {subject['title']}", "", about, "", f"NOT RUN: {subject['not_run']}"]
    versions = ", ".join(f"{name} {version}" for name, version in subject["versions"].items())
    rest = _rest(subject)
    return [
        f"# {subject['title']}",
        "",
        about,
        "",
        f"{_checked(subject)}: {versions}. "
        f"The adapter is [`{subject['subject']}.py`](../../backends/{subject['subject']}.py).",
        "",
        " ".join(
            [
                *(f"{said}: {', '.join(links)}." for said, links in _found(subject).items()),
                *(f"[{heading}](#{anchor(heading)}): {spans(results)}." for heading, results in rest.items()),
            ]
        ),
        "",
        *_confirmations(subject),
        *(line for each in subject["results"] for line in _story(each, subject)),
        *(line for heading, results in rest.items() for line in _section(heading, results)),
    ]


def _found(subject: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the clauses that have a story, as links to it, by what was found."""
    found: dict[str, list[str]] = {"**Fails**": [], "Fails?": [], "Gaps": []}
    names = {FAILS: "**Fails**", BY_HAND: "**Fails**", "gap": "Gaps"}
    for clause, said in words(subject, CLAUSES).items():
        if said not in ("pass", "–", ""):
            found.setdefault(names.get(said, said.capitalize()), []).append(f"[{clause}](#{clause.lower()})")
    return {said: links for said, links in found.items() if links}


def _rest(subject: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the clauses that have no story of their own, by the section that tells of them, each with a remark."""
    found = {each["clause"]: each for each in subject["results"]}
    rest: dict[str, dict[str, str]] = {PASSED: {}, SET_ASIDE: {}, UNTRIED: {}}
    for clause, said in words(subject, CLAUSES).items():
        if said == "pass":
            rest[PASSED][clause] = str(found[clause]["scenarios"])
        elif said == "–":
            rest[SET_ASIDE][clause] = _escaped(found[clause]["reason"])
        elif not said:
            rest[UNTRIED][clause] = ""
    return {heading: results for heading, results in rest.items() if results}


def _section(heading: str, results: Mapping[str, str]) -> list[str]:
    remark = {PASSED: ["scenarios"], SET_ASIDE: ["as a probe has shown"], UNTRIED: []}[heading]
    rows = [(f"[{each}]({_CONTRACT}#{each.lower()})", SENTENCES[each], told) for each, told in results.items()]
    width = 2 + len(remark)
    return [f"## {heading}", "", *grid(("clause", "what it says", *remark), (row[:width] for row in rows)), ""]


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
    return ["## Shown without the suite", "", *grid(("clause", "script", "what it says"), shown), ""]


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


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("\n", " ")
