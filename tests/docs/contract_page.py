"""docs/reference/contract.md: every clause of the contract, and what stands behind those that this release checks."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator

from n00dles_testing.conformance import implemented
from n00dles_testing.conformance.contract import LEVELS
from n00dles_testing.conformance.mutants import all_mutants
from n00dles_testing.conformance.sentences import SENTENCES
from n00dles_testing.crash.judge import CLAUSES
from tests.n00dles_testing.crash import mutants as executors

_INTRODUCTION = """# The contract

What a state store and an executor owe to whoever relies on them. An id never changes its meaning. The clauses of a
store are checked by `n00dles-testing check`, those of an executor by `n00dles-testing explore` and
pytest's `crash_safety` fixture. A clause without a check says so: nothing is known of it, and no report counts it.

A clause's *mutants* are stores or executors that break it on purpose. The tests of this project show that each is
caught; of every clause, at least one by that clause alone."""

_UNCHECKED = "*Not checked by this release.*"
_REPORT = re.compile(r"\b([\w.-]+/[\w.-]+) (?:PR )?#(\d+)")


def contract_page() -> str:
    """The contract, clause by clause."""
    lines = [_INTRODUCTION]
    documents = {clause.id: clause.documentation for clause in implemented()}
    broken_by = _broken_stores()
    for number, (name, ids) in LEVELS.items():
        lines += ["", f"## Stores, level {number}: {name}"]
        for id_ in ids:
            lines += _clause(id_, documents.get(id_), broken_by.get(id_, []))
    lines += ["", "## Executors"]
    documents = {clause.id: inspect.getdoc(clause.check) or "" for clause in CLAUSES}
    broken_by = _broken_executors()
    for id_ in (id_ for id_ in SENTENCES if id_.startswith("E")):
        lines += _clause(id_, documents.get(id_), broken_by.get(id_, []))
    return "\n".join([*lines, ""])


def _clause(id_: str, document: str | None, mutants: list[str]) -> Iterator[str]:
    yield from ("", f"### {id_}", "", f"**{SENTENCES[id_]}**", "")
    if document is None:
        yield _UNCHECKED
        return
    checked, _, reports = document.partition("Seen in:")
    for paragraph in checked.removeprefix(f"{id_}: ").strip().split("\n\n"):
        line = _one_line(paragraph)
        yield from (line[:1].upper() + line[1:], "")
    if reports:
        yield from (f"Seen in: {_REPORT.sub(_link, _one_line(reports))}", "")
    yield from ("Mutants:", "", *(f"- {mutant}" for mutant in mutants))


def _link(report: re.Match[str]) -> str:
    return f"[{report[0]}](https://github.com/{report[1]}/issues/{report[2]})"


def _broken_stores() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for mutant in all_mutants():
        module, _, name = mutant.target.partition(":")
        also = f" {', '.join(mutant.also_breaks)} sees it as well." if mutant.also_breaks else ""
        found.setdefault(mutant.breaks, []).append(_described(getattr(importlib.import_module(module), name)) + also)
    return found


def _broken_executors() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for kind in vars(executors).values():
        if isinstance(kind, type) and issubclass(kind, executors.Executor) and kind.breaks:
            found.setdefault(kind.breaks, []).append(_described(kind))
    return found


def _described(kind: type) -> str:
    return f"`{kind.__name__}`: {_one_line((inspect.getdoc(kind) or '').partition(chr(10) * 2)[0])}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
