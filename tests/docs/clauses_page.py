"""docs/reference/executor-clauses.md: each clause of an executor, where its fault was seen, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from n00dles_testing.conformance.sentences import SENTENCES
from n00dles_testing.crash.case import Clause
from n00dles_testing.crash.clauses import CLAUSES

__all__ = ["checked_by", "clauses_page", "linked"]

_INTRODUCTION = """# The clauses of an executor

What an executor owes to whoever resumes a run, clause by clause: what it means, where the fault was met in the wild,
and what the author of a pipeline or of an executor does about it. [The contract](contract.md) has them in one line
each, with the broken executors that show that each check can fail.

`n00dles-testing explore` and the `crash_safety` fixture hold a pipeline of yours against the clauses that can be told
from one disturbed run; `n00dles-testing executor` holds an executor against all of them, on generated pipelines."""

_REPORT = re.compile(r"\b([\w.-]+/[\w.-]+) (?:PR )?#(\d+)")


def clauses_page() -> str:
    """Every clause of an executor in a section of its own."""
    lines = [_INTRODUCTION, "", "| clause | checked by |", "|---|---|"]
    for clause in CLAUSES:
        lines.append(f"| [{clause.id}](#{clause.id.lower()}) {clause.title} | {checked_by(clause)} |")
    for clause in CLAUSES:
        lines += _section(clause)
    return "\n".join([*lines, ""])


def checked_by(clause: Clause) -> str:
    """Return the commands that check a clause."""
    return "`executor`" if clause.check is None else "`explore`, `executor`"


def linked(text: str) -> str:
    """Return a text in which each public report is a link."""
    return _REPORT.sub(lambda report: f"[{report[0]}](https://github.com/{report[1]}/issues/{report[2]})", text)


def _section(clause: Clause) -> Iterator[str]:
    yield from ("", f"## {clause.id}", "", f"**{SENTENCES[clause.id]}**", "", clause.meaning, "")
    if clause.seen_in:
        yield from ("**Seen in:**", "", *(f"- {linked(report)}" for report in clause.seen_in), "")
    fix, *more = clause.fix.split("\n\n")
    yield from (f"**Fix:** {fix}", *(line for paragraph in more for line in ("", paragraph)))
