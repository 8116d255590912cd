"""docs/reference/contract.md: every clause of the contract, and what stands behind those that this release checks."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator

from n00dles_testing.conformance import implemented
from n00dles_testing.conformance.contract import LEVELS
from n00dles_testing.conformance.mutants import all_mutants
from n00dles_testing.conformance.sentences import SENTENCES
from n00dles_testing.crash.clauses import CLAUSES
from tests.docs.clauses_page import checked_by, linked
from tests.docs.store_fixes import FIXES
from tests.n00dles_testing.crash import mutants as executors

_INTRODUCTION = """# The contract

What a state store and an executor owe to whoever relies on them. An id never changes its meaning. The clauses of a
store are checked by `n00dles-testing check`, those of an executor by `n00dles-testing explore` and pytest's
`crash_safety` fixture (on a pipeline of yours) and by `n00dles-testing executor` (on generated ones). A clause without
a check says so: nothing is known of it, and no report counts it.

A clause's *mutants* are stores or executors that break it on purpose. The tests of this project show that each is
caught, and by no unrelated clause; those that suffer from the same fault are named with it."""

_UNCHECKED = "*Not checked by this release.*"


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
    lines += [
        "",
        "What each means, where its fault was seen and how it is mended: [executor-clauses.md](executor-clauses.md).",
    ]
    broken_by = _broken_executors()
    for clause in CLAUSES:
        document = f"Checked by {checked_by(clause)}. [More](executor-clauses.md#{clause.id.lower()})."
        lines += _clause(clause.id, document, broken_by.get(clause.id, []))
    return "\n".join([*lines, ""]).replace("\n\n\n", "\n\n")


def _clause(id_: str, document: str | None, mutants: list[str]) -> Iterator[str]:
    yield from ("", f"### {id_}", "", f"**{SENTENCES[id_]}**", "")
    yield from documented(id_, document)
    if mutants and document is not None:
        yield from ("Mutants:", "", *(f"- {mutant}" for mutant in mutants))


def documented(id_: str, document: str | None) -> Iterator[str]:
    """Yield the documentation of a clause as Markdown; without, that it has no check."""
    if document is None:
        yield _UNCHECKED
        return
    checked, _, reports = document.partition("Seen in:")
    for paragraph in checked.removeprefix(f"{id_}: ").strip().split("\n\n"):
        line = _one_line(paragraph)
        yield from (line[:1].upper() + line[1:], "")
    if reports:
        yield from (f"Seen in: {linked(_one_line(reports))}", "")
    if id_ in FIXES:
        yield from (f"**Fix:** {FIXES[id_]}", "")


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
        if not (isinstance(kind, type) and issubclass(kind, executors.Executor) and kind.breaks):
            continue
        first, *more = kind.breaks.split()
        also = sorted({*more, *kind.also} - {first})
        seen = f" {', '.join(also)} see{'s' if len(also) == 1 else ''} it as well." if also else ""
        found.setdefault(first, []).append(_described(kind) + seen)
    return found


def _described(kind: type) -> str:
    return f"`{kind.__name__}`: {_one_line((inspect.getdoc(kind) or '').partition(chr(10) * 2)[0])}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
