"""The matrix in short, a line a subject and a column a level: on top of the table of the field trial, and in README.md.

Each cell leads to its story: a clause to what was found, what passed, does not apply or was not tried to the section
of the subject's page that says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from n00dles_testing.conformance.contract import LEVELS

from .results import BY_HAND, FAILS, word

__all__ = ["FOLDER", "PASSED", "SET_ASIDE", "UNTRIED", "anchor", "grid", "in_readme", "link", "place", "short", "words"]

FOLDER = "field-trial"
PASSED = "Passed"
SET_ASIDE = "Does not apply"
UNTRIED = "Not tried yet"
_SECTIONS = {"pass": PASSED, "–": SET_ASIDE, "": UNTRIED}
"""What is told of many clauses at once, and the section of a subject's page that has them."""
_IN_README = re.compile(r"(?s)(<!-- the matrix, written by `make field-trial` -->\n).*?(<!-- end of the matrix -->)")
_RESULTS = "conformance/results/"


def in_readme(text: str, subjects: Sequence[Mapping[str, Any]]) -> str:
    """Return the README with the matrix of these subjects. Raises `ValueError` if it has no place for that."""
    table = "\n".join(short(subjects, beside=_RESULTS))
    text, count = _IN_README.subn(lambda found: f"{found[1]}\n{table}\n\n{found[2]}", text)
    if count != 1:
        raise ValueError("README.md needs the two comments between which the matrix of the field trial stands, once")
    return text


def short(subjects: Sequence[Mapping[str, Any]], beside: str = "") -> list[str]:
    """Return the table of the subjects that were tried; `beside` leads from its page to the folder of results."""
    levels = [f"{name} {ids[0]}–{ids[-1]}" for name, ids in LEVELS.values()]
    rows = [
        (f"{link(each, beside)} {_version(each)}", *(_level(each, ids, beside) for _, ids in LEVELS.values()))
        for each in subjects
        if each["results"]
    ]
    return grid(("store", *levels), rows)


def _level(subject: Mapping[str, Any], clauses: Iterable[str], beside: str) -> str:
    """Return what was found at a level: what fails by name, and of the rest how many."""
    told: dict[str, list[str]] = {}
    for clause, said in words(subject, clauses).items():
        told.setdefault(FAILS if said == BY_HAND else said, []).append(clause)
    parts = [f"{said} {_each(subject, told.pop(said), beside)}" for said in (FAILS, "fails?") if said in told]
    gaps = told.pop("gap", [])
    if gaps:
        what = "1 gap" if len(gaps) == 1 else f"{len(gaps)} gaps"
        parts.append(f"[{what}]({place(subject, gaps[0], beside)})")
    untried, passed, aside = (told.pop(said, []) for said in ("", "pass", "–"))
    parts += [f"{said} {_each(subject, clauses, beside)}" for said, clauses in told.items()]
    if passed or not (parts or untried):
        is_whole = not (parts or untried)
        said, count = ("pass", len(passed)) if passed else ("–", len(aside))
        parts.append(_many(subject, said if is_whole else f"{count} pass", said, beside))
    if untried:
        parts.append(_many(subject, f"{len(untried)} not tried" if parts else "not tried", "", beside))
    return ", ".join(parts)


def words(subject: Mapping[str, Any], clauses: Iterable[str]) -> dict[str, str]:
    """Return the word of each clause; of one that nobody has tried it is empty."""
    found = {each["clause"]: word(each, subject) for each in subject["results"]}
    return {clause: found.get(clause, "") for clause in clauses}


def place(subject: Mapping[str, Any], clause: str, beside: str = "") -> str:
    """Return where the story of a clause stands."""
    (said,) = words(subject, [clause]).values()
    return _page(subject, beside) + "#" + anchor(_SECTIONS.get(said, clause))


def link(subject: Mapping[str, Any], beside: str = "") -> str:
    """Return the name of a subject, which leads to its page."""
    return f"[{subject['title']}]({_page(subject, beside)})"


def grid(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return a table as Markdown."""
    headings = list(headings)
    return [f"| {' | '.join(headings)} |", "|" + "---|" * len(headings), *(f"| {' | '.join(row)} |" for row in rows)]


def _each(subject: Mapping[str, Any], clauses: Iterable[str], beside: str) -> str:
    return ", ".join(f"[{each}]({place(subject, each, beside)})" for each in clauses)


def _many(subject: Mapping[str, Any], text: str, said: str, beside: str) -> str:
    return f"[{text}]({_page(subject, beside)}#{anchor(_SECTIONS[said])})"


def _version(subject: Mapping[str, Any]) -> str:
    """Return the version of the subject itself, the first of its packages."""
    name, found = next(iter(subject["versions"].items()))
    return f"Python {found}" if name == "python" else str(found)


def _page(subject: Mapping[str, Any], beside: str) -> str:
    return f"{beside}{FOLDER}/{subject['subject']}.md"


def anchor(heading: str) -> str:
    """Return the anchor of a heading, or of a clause."""
    return heading.lower().replace(" ", "-")
